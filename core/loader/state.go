package loader

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// State is where a run continues: the next batch starts at Position of Epoch. It is
// the same on every process. It contains nothing of the mesh, the layout or the
// batch size, so a run continues on any of them.
type State struct {
	Order    string             // the name of the order
	Dataset  source.Fingerprint // of the records
	Records  int64              // of an epoch
	Seed     int64              // of the order
	Epoch    int64              // of the next batch
	Position int64              // records of the epoch that were delivered
}

const (
	stateVersion  = 1
	maxStateBytes = 4096 // of a text to parse; JSON writes at most 256
	maxEpoch      = 1 << 53
)

// JSON returns the state as one line of JSON: at most 256 bytes, and the same bytes
// for the same state.
func (s State) JSON() []byte { return s.AppendJSON(make([]byte, 0, 256)) }

// AppendJSON appends the result of JSON.
func (s State) AppendJSON(dst []byte) []byte {
	number := func(key string, v int64) {
		dst = append(dst, key...)
		dst = strconv.AppendInt(dst, v, 10)
	}
	number(`{"meshfeed":`, stateVersion)
	dst = appendText(append(dst, `,"order":`...), s.Order)
	dst = append(dst, `,"dataset":"`...)
	dst = hex.AppendEncode(dst, s.Dataset[:])
	number(`","records":`, s.Records)
	number(`,"seed":`, s.Seed)
	number(`,"epoch":`, s.Epoch)
	number(`,"position":`, s.Position)
	return append(dst, '}')
}

// appendText appends a JSON string.
func appendText(dst []byte, s string) []byte {
	for _, c := range []byte(s) {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			text, _ := json.Marshal(s) // strings do not fail
			return append(dst, text...)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
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

// ParseState parses a state. The text must have every key once, in any order, and
// no other. The error is Incompatible for a state of another version, and
// InvalidArgument for anything else that is wrong.
func ParseState(text []byte) (State, error) {
	if len(text) > maxStateBytes {
		return State{}, badState("the text has %d bytes, but a state has at most 256", len(text))
	}
	values, err := members(text)
	if err != nil {
		return State{}, err
	}
	p := stateParser{values: values}
	if v := p.integer("meshfeed", 0, 1<<31); p.err == nil && v != stateVersion {
		return State{}, fail(status.Incompatible, "the state is of version %d, but this release reads version %d", v, stateVersion).
			WithHint("read it with the release that wrote it")
	}
	s := State{
		Order:    p.text("order"),
		Dataset:  p.fingerprint("dataset"),
		Records:  p.integer("records", 0, sampler.MaxRecords),
		Seed:     p.integer("seed", -sampler.MaxSeed, sampler.MaxSeed),
		Epoch:    p.integer("epoch", 0, maxEpoch),
		Position: p.integer("position", 0, sampler.MaxRecords),
	}
	if p.err == nil && s.Position > s.Records {
		p.err = badState("position %d is beyond the %d records", s.Position, s.Records)
	}
	p.checkKeys()
	if p.err != nil {
		return State{}, p.err
	}
	return s, nil
}

var stateKeys = []string{"meshfeed", "order", "dataset", "records", "seed", "epoch", "position"}

func badState(format string, args ...any) *status.Error {
	return fail(status.InvalidArgument, "this is not a saved state: "+format, args...).
		WithHint("pass on a saved state, unchanged")
}

// members parses a flat JSON object of strings and numbers.
func members(text []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, badState("it is not a JSON object")
	}
	values := map[string]any{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, badState("%v", err)
		}
		name, _ := key.(string)
		if _, dup := values[name]; dup {
			return nil, badState("key %q stands there twice", name)
		}
		if values[name], err = d.Token(); err != nil {
			return nil, badState("%v", err)
		}
		if _, nested := values[name].(json.Delim); nested {
			return nil, badState("key %q has neither a number nor a text", name)
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, badState("the text is cut off")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, badState("something stands behind the object")
	}
	return values, nil
}

// stateParser keeps the first error.
type stateParser struct {
	values map[string]any
	err    error
}

func (p *stateParser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = badState(format, args...)
	}
}

// checkKeys returns an error for keys that a state does not have.
func (p *stateParser) checkKeys() {
	for _, key := range slices.Sorted(maps.Keys(p.values)) {
		if !slices.Contains(stateKeys, key) {
			p.fail("key %q is not one of a state's", key)
		}
	}
}

func (p *stateParser) value(key string) any {
	v, ok := p.values[key]
	if !ok {
		p.fail("key %q is missing", key)
	}
	return v
}

func (p *stateParser) text(key string) string {
	s, ok := p.value(key).(string)
	if !ok || len(s) > 64 {
		p.fail("key %q is not a text of at most 64 bytes", key)
	}
	return s
}

func (p *stateParser) fingerprint(key string) source.Fingerprint {
	s := p.text(key)
	f, err := source.ParseFingerprint(s)
	if err != nil {
		p.fail("key %q is not a fingerprint (32 hexadecimal digits)", key)
	}
	return f
}

func (p *stateParser) integer(key string, low, high int64) int64 {
	n, ok := p.value(key).(json.Number)
	if !ok {
		p.fail("key %q is not a number", key)
		return 0
	}
	v, err := strconv.ParseInt(n.String(), 10, 64)
	if err != nil || v < low || v > high {
		p.fail("key %q is %s, but must be an integer from %d to %d", key, n, low, high)
	}
	return v
}

// fits returns an error if a run of live cannot continue at a saved state. It names
// every pair of values that differ.
func (s State) fits(live State, ignoreDataset bool) error {
	var differ []string
	compare := func(what string, saved, live any) {
		if saved != live {
			differ = append(differ, fmt.Sprintf("%s saved %v, live %v", what, saved, live))
		}
	}
	if !ignoreDataset {
		compare("dataset", s.Dataset.String(), live.Dataset.String())
	}
	compare("records", s.Records, live.Records)
	compare("order", strconv.Quote(s.Order), strconv.Quote(live.Order))
	compare("seed", s.Seed, live.Seed)
	if differ == nil {
		return nil
	}
	return fail(status.Incompatible, "the saved state is of another run: %s", strings.Join(differ, "; ")).
		WithHint("%s", s.remedy(live))
}

func (s State) remedy(live State) string {
	if s.Dataset != live.Dataset && s.Records == live.Records && s.Order == live.Order && s.Seed == live.Seed {
		return "open the dataset that was saved, or pass dataset=\"ignore\" (Go: IgnoreDataset) if its records are the same"
	}
	return "continue with the dataset, order and seed that were saved"
}
