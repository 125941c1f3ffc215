package loader

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/jsontext"
)

// State is where a run continues: the next batch starts at Position of Epoch. It is
// the same on every process. It contains nothing of the mesh, the layout or the
// batch size, so a run continues on any of them.
type State struct {
	Order    string             // the name of the order
	Dataset  source.Fingerprint // fingerprint of the records
	Records  int64              // records in an epoch
	Seed     int64              // seed of the order
	Epoch    int64              // position of the next batch
	Position int64              // records of the epoch that were delivered
	Commit   string             // the commit of all files, if they come from one commit of the hub; else ""
}

const (
	stateVersion  = 1
	maxWritten    = 256  // bytes that JSON writes
	maxStateBytes = 4096 // bytes of a text to parse
	commitDigits  = 40
	maxEpoch      = 1 << 53
)

// JSON returns the state as one line of JSON: at most 256 bytes, and the same bytes
// for the same state. If the numbers are so long that a commit does not fit, the commit is left out.
func (s State) JSON() []byte {
	dst := make([]byte, 0, maxWritten)
	number := func(key string, v int64) {
		dst = append(dst, key...)
		dst = strconv.AppendInt(dst, v, 10)
	}
	number(`{"meshfeed":`, stateVersion)
	dst = jsontext.AppendString(append(dst, `,"order":`...), s.Order)
	dst = append(dst, `,"dataset":"`...)
	dst = hex.AppendEncode(dst, s.Dataset[:])
	number(`","records":`, s.Records)
	number(`,"seed":`, s.Seed)
	number(`,"epoch":`, s.Epoch)
	number(`,"position":`, s.Position)
	if commit := `,"commit":"` + s.Commit + `"`; s.Commit != "" && len(dst)+len(commit) < maxWritten {
		dst = append(dst, commit...)
	}
	return append(dst, '}')
}

// String returns the JSON.
func (s State) String() string { return string(s.JSON()) }

// MarshalJSON returns the result of JSON.
func (s State) MarshalJSON() ([]byte, error) { return s.JSON(), nil }

// UnmarshalJSON parses the result of JSON.
func (s *State) UnmarshalJSON(text []byte) error {
	p, err := ParseState(text)
	*s = p
	return err
}

// Cursor returns the epoch and the position.
func (s State) Cursor() batch.Cursor { return batch.Cursor{Epoch: s.Epoch, Position: s.Position} }

// ParseState parses a state. It is as strict as [jsontext.Reader]: the text must
// have every key but the commit once, in any order, and no other. The error is Incompatible for a
// state of another version, and InvalidArgument for anything else that is wrong.
func ParseState(text []byte) (State, error) {
	if len(text) > maxStateBytes {
		return State{}, badState("", fmt.Sprintf("the text has %d bytes, but a state has at most 256", len(text)))
	}
	r, err := jsontext.NewReader(text, jsontext.Form{MaxDepth: 1, MaxString: 64, Fail: badState})
	if err != nil {
		return State{}, err
	}
	var s State
	err = r.Members("a state", len(stateKeys)-1, stateKeys, func(key string) error { return s.parse(r, key) })
	if err == nil && s.Position > s.Records {
		err = badState("/position", fmt.Sprintf("position %d is beyond the %d records", s.Position, s.Records))
	}
	if err != nil {
		return State{}, err
	}
	return s, nil
}

var stateKeys = []string{"meshfeed", "order", "dataset", "records", "seed", "epoch", "position", "commit"}

// parse parses the value of a key.
func (s *State) parse(r *jsontext.Reader, key string) (err error) {
	switch key {
	case "meshfeed":
		var version int64
		if version, err = r.Integer("a version", 0, 1<<31); err == nil && version != stateVersion {
			return fail(status.Incompatible, "the state is of version %d, but this release reads version %d", version, stateVersion).
				WithHint("read it with the release that wrote it")
		}
	case "order":
		s.Order, err = r.Text("the name of an order")
	case "dataset":
		var text string
		if text, err = r.Text("a fingerprint"); err != nil {
			return err
		}
		if s.Dataset, err = source.ParseFingerprint(text); err != nil {
			return r.Fail("%q is not a fingerprint (32 hexadecimal digits)", text)
		}
	case "records":
		s.Records, err = r.Integer("a number of records", 0, sampler.MaxRecords)
	case "seed":
		s.Seed, err = r.Integer("a seed", -sampler.MaxSeed, sampler.MaxSeed)
	case "epoch":
		s.Epoch, err = r.Integer("an epoch", 0, maxEpoch)
	case "position":
		s.Position, err = r.Integer("a position", 0, sampler.MaxRecords)
	case "commit":
		if s.Commit, err = r.Text("a commit"); err == nil && (len(s.Commit) != commitDigits || strings.Trim(s.Commit, "0123456789abcdef") != "") {
			err = r.Fail("%q is not a commit (%d hexadecimal digits)", s.Commit, commitDigits)
		}
	}
	return err
}

// badState makes the error of a text that is not a state.
func badState(pointer, message string) *status.Error {
	if pointer != "" {
		message = pointer + ": " + message
	}
	return fail(status.InvalidArgument, "this is not a saved state: %s", message).WithHint("pass on a saved state, unchanged")
}

// fits returns an error if a run of live cannot continue at a saved state. It names
// every pair of values that differ. Mixed says that the live dataset is a mixture.
func (s State) fits(live State, ignoreDataset, mixed bool) error {
	var differ []string
	compare := func(what string, saved, live any) {
		if saved != live {
			differ = append(differ, fmt.Sprintf("%s saved %v, live %v", what, saved, live))
		}
	}
	if !ignoreDataset {
		compare("dataset", s.Dataset.String(), live.Dataset.String())
	}
	if s.otherCommit(live) && differ != nil {
		compare("commit", s.Commit, live.Commit)
	}
	compare("records", s.Records, live.Records)
	compare("order", strconv.Quote(s.Order), strconv.Quote(live.Order))
	compare("seed", s.Seed, live.Seed)
	if differ == nil {
		return nil
	}
	return fail(status.Incompatible, "the saved state is of another run: %s", strings.Join(differ, "; ")).
		WithHint("%s", s.remedy(live, mixed))
}

// appended reports whether the live run has the saved dataset with changes of later records, such as new
// weights of a mixture. The error is Incompatible if these records were delivered without the changes.
func (s State) appended(live State, src source.Source) (bool, error) {
	known := src.Facts().Changes
	if known == nil || s.Records != live.Records {
		return false, nil
	}
	changes, err := known(context.Background())
	if err != nil {
		return false, err
	}
	for _, c := range changes {
		if c.Before != s.Dataset {
			continue
		}
		if epoch := c.Record / s.Records; s.Epoch > epoch || s.Epoch == epoch && s.Position > c.Record%s.Records {
			return false, fail(status.Incompatible, "the dataset has other records from record %d of all epochs on, which is record %d of epoch %d, but the state was saved without this change at record %d of epoch %d",
				c.Record, c.Record%s.Records, epoch, s.Position, s.Epoch).
				WithHint("let later stages begin where the state was saved or behind it, and leave the earlier ones as they were")
		}
		return true, nil
	}
	return false, nil
}

// otherCommit reports whether the live dataset is of another commit than the saved one.
func (s State) otherCommit(live State) bool {
	return s.Commit != "" && live.Commit != "" && s.Commit != live.Commit
}

func (s State) remedy(live State, mixed bool) string {
	if s.otherCommit(live) && s.Dataset != live.Dataset {
		return fmt.Sprintf("open the commit that was saved: write @%s as the revision, as in hf://datasets/ORG/NAME@%s", s.Commit, s.Commit)
	}
	if s.Dataset != live.Dataset && s.Records == live.Records && s.Order == live.Order && s.Seed == live.Seed {
		if mixed {
			return fmt.Sprintf(`mix the datasets that were saved, with the same options and schedule; you may append stages that begin at record %d of epoch %d or later`, s.Position, s.Epoch)
		}
		return `open the dataset that was saved, with the same views; if its records are the same, pass dataset="ignore" (Go: IgnoreDataset, C: MF_IGNORE_DATASET)`
	}
	return "continue with the dataset, order and seed that were saved"
}

// commitOf returns the commit of a source, if all its files are of one.
func commitOf(src source.Source) string {
	names := source.CommitsOf(src)
	if len(names) != 1 {
		return ""
	}
	_, commit, _ := strings.Cut(names[0], "@")
	return commit
}
