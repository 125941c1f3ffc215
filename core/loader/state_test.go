package loader_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

const state = `{"meshfeed":1,"order":"shuffle.1","dataset":"000102030405060708090a0b0c0d0e0f","records":1797,"seed":-3,"epoch":2,"position":512}`

func TestStateText(t *testing.T) {
	s := loader.State{
		Order: "shuffle.1", Dataset: source.Fingerprint{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
		Records: 1797, Seed: -3, Epoch: 2, Position: 512,
	}
	if got := string(s.JSON()); got != state {
		t.Errorf("got  %s\nwant %s", got, state)
	}
	back, err := loader.ParseState([]byte(state))
	if err != nil || back != s {
		t.Errorf("read as %+v, %v", back, err)
	}
	var in struct{ Saved loader.State }
	text, err := json.Marshal(struct{ Saved loader.State }{s})
	if err != nil || json.Unmarshal(text, &in) != nil || in.Saved != s {
		t.Errorf("inside another document: %s became %+v, %v", text, in.Saved, err)
	}
}

const commit = "0123456789012345678901234567890123456789"

// TestStateOfACommit: a state names the commit of its files, and an error names the commits that differ.
func TestStateOfACommit(t *testing.T) {
	src := &committed{Source: digits(80), names: []string{"hf://datasets/org/name@" + commit}}
	lay := newLayout(t, document(8))
	l := newLoader(t, src, loader.Options{Layout: lay})
	saved := l.State()
	if text := string(saved.JSON()); !strings.HasSuffix(text, `,"position":0,"commit":"`+commit+`"}`) {
		t.Error(text)
	}
	if c, err := l.Certificate(); err != nil || !slices.Equal(c.Commits, src.names) {
		t.Errorf("%v, %v", c.Commits, err)
	}
	other := strings.Repeat("ab", 20)
	src.names = []string{"hf://datasets/org/name@" + other}
	moved := newLoader(t, src, loader.Options{Layout: lay})
	if err := moved.Restore(saved.JSON(), false); err != nil || moved.State().Commit != other {
		t.Errorf("equal files: %v", err)
	}
	fp := saved.Dataset.String()
	saved.Dataset[0] ^= 0xff
	wantError(t, moved.Restore(saved.JSON(), false), status.Incompatible, "loader: the saved state is of another run: dataset saved "+saved.Dataset.String()+", live "+fp+
		"; commit saved "+commit+", live "+other+"; open the commit that was saved: write @"+commit+" as the revision, as in hf://datasets/ORG/NAME@"+commit)
	src.names = append(src.names, "hf://datasets/org/other@"+commit)
	if s := newLoader(t, src, loader.Options{Layout: lay}).State(); s.Commit != "" {
		t.Errorf("of two commits: %s", s)
	}
	d := lay.Document()
	d.Dataset = &layout.DatasetSpec{Records: 80, Commits: src.names[1:]}
	planned, err := layout.New(d)
	if err != nil {
		t.Fatal(err)
	}
	src.names = src.names[:1]
	_, err = loader.New(src, loader.Options{Layout: planned})
	wantError(t, err, status.Incompatible, "loader: the layout is for the files of hf://datasets/org/other@"+commit+", but the dataset has those of hf://datasets/org/name@"+other+
		"; open the commit that was planned for, or change /dataset/commits")
}

// committed is a source of files of commits.
type committed struct {
	source.Source
	names []string
}

func (c *committed) Facts() source.Facts {
	f := c.Source.Facts()
	f.Commits = func() []string { return c.names }
	return f
}

func TestLongestState(t *testing.T) {
	for _, order := range append(sampler.Names(), sampler.Local(sampler.MaxLocalParts, sampler.MaxLocalBatch), sampler.Blocks(sampler.MaxWindow, sampler.MaxBlock), "blocks.1:1048576:0:4503599627370495") {
		s := loader.State{Order: order, Records: sampler.MaxRecords, Seed: -sampler.MaxSeed, Epoch: 1 << 53, Position: sampler.MaxRecords}
		if n := len(s.JSON()); n > 256 {
			t.Errorf("%d bytes: %s", n, s)
		}
		if back, err := loader.ParseState(s.JSON()); err != nil || back != s {
			t.Errorf("%s was read as %v, %v", s, back, err)
		}
		s.Commit = commit
		if n := len(s.JSON()); n > 256 {
			t.Errorf("%d bytes: %s", n, s)
		}
	}
}

// A state after the last record is valid, though no loader saves one. The next batch
// is the first of the next epoch.
func TestStateAfterTheLastRecord(t *testing.T) {
	l := newLoader(t, digits(80), loader.Options{Layout: newLayout(t, document(8))})
	s := l.State()
	s.Epoch, s.Position = 2, 80
	if err := l.Restore(s.JSON(), false); err != nil {
		t.Fatal(err)
	}
	if s = l.State(); s.Epoch != 3 || s.Position != 0 {
		t.Errorf("the loader is at %v", s)
	}
}

// Other writers may add spaces and change the order of keys.
func TestStateOfOtherWriters(t *testing.T) {
	var m map[string]any
	d := json.NewDecoder(strings.NewReader(state))
	d.UseNumber()
	if err := d.Decode(&m); err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(m, "", "    ")
	if err != nil {
		t.Fatal(err)
	}
	if s, err := loader.ParseState(text); err != nil || s.String() != state {
		t.Errorf("read as %v, %v", s, err)
	}
}

// withHint appends the hint of most errors, unless the text has another one.
func withHint(text string) string {
	if strings.Contains(text, "; ") {
		return text
	}
	return text + "; pass on a saved state, unchanged"
}

func TestStateRefused(t *testing.T) {
	with := func(old, new string) string { return strings.Replace(state, old, new, 1) }
	for _, c := range []struct{ text, want string }{
		{"", `expected a value, but the text ends (line 1, byte 1)`},
		{"[]", `expected a state, but found a list`},
		{"null", `expected a state, but found null`},
		{state[:40], `a string has no end (line 1, byte 41)`},
		{state[:len(state)-1], `expected ',' or '}', but the text ends (line 1, byte 129)`},
		{state + "{}", `the document ends here, but more text follows (line 1, byte 130)`},
		{with(`"seed":-3,`, ``), `a state needs the key "seed"`},
		{with(`"seed":-3`, `"seed":-3,"seed":-3`), `/seed: key "seed" occurs twice; name it once`},
		{with(`"seed"`, `"Seed"`), `/Seed: "Seed" is not a key; write "seed": keys are matched by case`},
		{with(`"seed":-3`, `"seed":-3,"mesh":[1]`), `/mesh: values are nested deeper than 1 (line 1, byte 112)`},
		{with(`"seed":-3`, `"seed":-3,"b":1,"a":1`), `/b: "b" is not a key; the keys here are meshfeed, order, dataset, records, seed, epoch, position, commit`},
		{with(`:-3`, `:"-3"`), `/seed: expected a seed, but found a string`},
		{with(`:-3`, `:-3.0`), `/seed: the number is not written as an integer (line 1, byte 102)`},
		{with(`:-3`, `:9007199254740993`), `/seed: the number is outside ±2^53 (line 1, byte 102)`},
		{with(`:2,`, `:-1,`), `/epoch: expected an epoch from 0 to 9007199254740992, but found -1`},
		{with(`:512`, `:1798`), `/position: position 1798 is beyond the 1797 records`},
		{with(`0f"`, `0g"`), `/dataset: "000102030405060708090a0b0c0d0e0g" is not a fingerprint (32 hexadecimal digits)`},
		{with(`:512`, `:512,"commit":"0123"`), `/commit: "0123" is not a commit (40 hexadecimal digits)`},
		{with(`"shuffle.1"`, `7`), `/order: expected the name of an order, but found a number`},
		{with(`"shuffle.1"`, `"`+strings.Repeat("x", 65)+`"`), `/order: the name of an order is "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…" and has 65 bytes, but may have 64; choose a shorter one`},
		{strings.Repeat(" ", 4097), "the text has 4097 bytes, but a state has at most 256"},
	} {
		_, err := loader.ParseState([]byte(c.text))
		wantError(t, err, status.InvalidArgument, "loader: this is not a saved state: "+withHint(c.want))
	}
	_, err := loader.ParseState([]byte(with(`"meshfeed":1`, `"meshfeed":2`)))
	wantError(t, err, status.Incompatible, "loader: the state is of version 2, but this release reads version 1; read it with the release that wrote it")
}

func TestRestoreRefused(t *testing.T) {
	lay := newLayout(t, document(8))
	l := newLoader(t, digits(80), loader.Options{Layout: lay, Shuffle: true, Seed: 1})
	next(t, l)
	live := l.State()
	change := func(f func(*loader.State)) []byte {
		s := live
		s.Epoch = 4
		f(&s)
		return s.JSON()
	}
	const another = "loader: the saved state is of another run: "
	const goBack = "; continue with the dataset, order and seed that were saved"
	fp := live.Dataset.String()
	for _, c := range []struct {
		state []byte
		want  string
	}{
		{change(func(s *loader.State) { s.Seed = 2 }), another + "seed saved 2, live 1" + goBack},
		{change(func(s *loader.State) { s.Order = "sequential.1" }), another + `order saved "sequential.1", live "shuffle.1"` + goBack},
		{change(func(s *loader.State) { s.Dataset[0] ^= 0xff }), another + "dataset saved 73772c" + fp[6:] + ", live " + fp +
			`; open the dataset that was saved, with the same views; if its records are the same, pass dataset="ignore" (Go: IgnoreDataset, C: MF_IGNORE_DATASET)`},
		{change(func(s *loader.State) { s.Dataset, s.Records, s.Seed = source.Fingerprint{}, 100, 0 }),
			another + "dataset saved 00000000000000000000000000000000, live " + fp + "; records saved 100, live 80; seed saved 0, live 1" + goBack},
	} {
		wantError(t, l.Restore(c.state, false), status.Incompatible, strings.ReplaceAll(c.want, "73772c", hexFlip(fp)))
		if l.State() != live {
			t.Error("a bad state moved the cursor")
		}
	}
	if err := l.Restore(change(func(s *loader.State) { s.Dataset[0] ^= 1 }), true); err != nil || l.Epoch() != 4 {
		t.Errorf("IgnoreDataset: %v, at %v", err, l.State())
	}
	wantError(t, l.Restore(change(func(s *loader.State) { s.Records = 81 }), true), status.Incompatible,
		another+"records saved 81, live 80"+goBack)
}

// New checks a state like Restore, unless an option turns the check off.
func TestStateOfAnotherDataset(t *testing.T) {
	s := newLoader(t, digits(80), loader.Options{Layout: newLayout(t, document(8))}).State()
	s.Dataset[0] ^= 0xff
	s.Epoch = 4
	o := loader.Options{Layout: newLayout(t, document(8)), State: s.JSON()}
	if _, err := loader.New(digits(80), o); status.CodeOf(err) != status.Incompatible {
		t.Errorf("got %v", err)
	}
	o.IgnoreDataset = true
	if l := newLoader(t, digits(80), o); l.Epoch() != 4 {
		t.Errorf("the loader is at %v", l.State())
	}
}

// hexFlip returns the first three bytes with the first one inverted.
func hexFlip(fp string) string {
	f, _ := source.ParseFingerprint(fp)
	f[0] ^= 0xff
	return f.String()[:6]
}

func FuzzParseState(f *testing.F) {
	f.Add([]byte(state))
	f.Add([]byte(`{"meshfeed":1e0}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := loader.ParseState(text)
		if err != nil {
			return
		}
		again, err := loader.ParseState(s.JSON())
		if err != nil || again != s {
			t.Fatalf("%q became %+v, then %+v, %v", text, s, again, err)
		}
	})
}
