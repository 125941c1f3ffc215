package certificate_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/certificate"
	"github.com/meshfeed/meshfeed/core/status"
)

const text = `{"meshfeed":2,"order":"shuffle.1","dataset":"000102030405060708090a0b0c0d0e0f","records":1797,"seed":7,` +
	`"runs":[{"mesh":[[0,2]],"processes":[[1,2]],"parts":2,"delivered":[[0,3,0,1792],[3,1,0,64]],"dropped":[[0,3,1792,1797]],"skipped":[],` +
	`"rows":5440,"digest":"00000000000000010000000000000002"}]}`

func sample(t *testing.T) certificate.Certificate {
	r := newRun(1, 2)
	r.Parts = 2
	for epoch := range int64(3) {
		r.Deliver(epoch, 0, 1792, certificate.Evidence{Rows: 1792})
		r.Drop(certificate.Span{Epoch: epoch, Epochs: 1, First: 1792, Last: 1797})
	}
	r.Deliver(3, 0, 64, certificate.Evidence{Rows: 64, Digest: certificate.Digest{High: 1, Low: 2}})
	return certify(t, sequence(1797), r)
}

func TestJSON(t *testing.T) {
	got, err := sample(t).JSON()
	if err != nil || string(got) != text {
		t.Errorf("got  %s, %v\nwant %s", got, err, text)
	}
	back, err := certificate.Parse([]byte(text))
	if err != nil || !back.Equal(sample(t)) {
		t.Errorf("read as %+v, %v", back, err)
	}
	var inside struct{ Saved certificate.Certificate }
	if err := json.Unmarshal([]byte(`{"Saved":`+text+`}`), &inside); err != nil || !inside.Saved.Equal(back) {
		t.Errorf("inside another document: %+v, %v", inside, err)
	}
	empty, err := certificate.Certificate{Sequence: sequence(5)}.JSON()
	if err != nil || !strings.HasSuffix(string(empty), `"runs":[]}`) {
		t.Errorf("one without a run: %s, %v", empty, err)
	}
}

// TestCommits: runs over equal files of two commits are one certificate, which names both.
func TestCommits(t *testing.T) {
	a, b := sample(t), sample(t)
	a.Commits, b.Commits = []string{"hf://datasets/o/n@b"}, []string{"hf://datasets/o/n@a", "hf://datasets/o/n@b"}
	sum, err := a.Add(b)
	if err != nil {
		t.Fatal(err)
	}
	written, err := sum.JSON()
	back, again := certificate.Parse(written)
	const commits = `"commits":["hf://datasets/o/n@a","hf://datasets/o/n@b"]}`
	if err != nil || again != nil || !strings.HasSuffix(string(written), commits) {
		t.Errorf("%s, %v, %v", written, err, again)
	}
	if !slices.Equal(back.Commits, sum.Commits) || !strings.Contains(back.String(), "\n  of the files of hf://datasets/o/n@a, hf://datasets/o/n@b\n") {
		t.Errorf("read as %s", back)
	}
}

// Parse accepts spaces and another order of keys, as other programs write them.
func TestJSONOfOtherWriters(t *testing.T) {
	var values map[string]any
	if err := json.Unmarshal([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	spaced, err := json.MarshalIndent(values, "", "    ")
	if err != nil {
		t.Fatal(err)
	}
	if c, err := certificate.Parse(spaced); err != nil || !c.Equal(sample(t)) {
		t.Errorf("read as %+v, %v", c, err)
	}
}

// withHint appends the hint of most errors, unless the text has another one.
func withHint(text string) string {
	if strings.Contains(text, "; ") {
		return text
	}
	return text + "; pass on what a loader gave, unchanged"
}

func TestParseRefused(t *testing.T) {
	with := func(old, new string) string { return strings.Replace(text, old, new, 1) }
	run := text[strings.Index(text, `{"mesh":`) : len(text)-2]
	const first = `[0,3,0,1792]`
	for _, c := range []struct{ text, want string }{
		{"", `expected a value, but the text ends (line 1, byte 1)`},
		{text + "{}", `the document ends here, but more text follows (line 1, byte 295)`},
		{with(`"seed":7,`, ``), `a certificate needs the key "seed"`},
		{with(`"seed":7`, `"seed":7,"seed":7`), `/seed: key "seed" occurs twice; name it once`},
		{with(`"seed"`, `"Seed"`), `/Seed: "Seed" is not a key; write "seed": keys are matched by case`},
		{with(`"parts"`, `"Parts"`), `/runs/0/Parts: "Parts" is not a key; write "parts": keys are matched by case`},
		{with(`"skipped":[],`, ``), `/runs/0: a run needs the key "skipped"`},
		{with(`"seed":7`, `"seed":7,"mesh":1`), `/mesh: "mesh" is not a key; the keys here are meshfeed, order, dataset, records, seed, runs, commits`},
		{with(`"seed":7`, `"seed":7e0`), `/seed: the number is not written as an integer (line 1, byte 102)`},
		{with(first, `[0,3,0,1792,9]`), `/runs/0/delivered/0/4: expected a piece as [epoch, epochs, first, last], but the list has more than 4 elements`},
		{with(first, `[0,3,0]`), `/runs/0/delivered/0: expected a piece as [epoch, epochs, first, last], but the list has 3`},
		{with(first, `[0,3,0,1000],[0,3,1000,1792]`), `the pieces [0, 1000) of epochs 0 to 2, [1000, 1792) of epochs 0 to 2, [0, 64) of epoch 3 are not in canonical form`},
		{with(first+`,[3,1,0,64]`, `[3,1,0,64],`+first), `the pieces [0, 64) of epoch 3, [0, 1792) of epochs 0 to 2 are not in canonical form`},
		{with(first, `[0,4,0,1792]`), `the pieces [0, 1792) of epochs 0 to 3, [0, 64) of epoch 3 are not in canonical form`},
		{with(first, `[0,2,0,1792],[2,1,0,1792]`), `the pieces [0, 1792) of epochs 0 to 1, [0, 1792) of epoch 2, [0, 64) of epoch 3 are not in canonical form`},
		{with(first, `[-1,3,0,1792]`), `/runs/0/delivered/0/0: expected an integer from 0 to 9007199254740992, but found -1`},
		{with(first, `[0,0,0,1792]`), `piece [0 0 0 1792] is not within epochs of 1797 records`},
		{with(first, `[0,3,0,1798]`), `piece [0 3 0 1798] is not within epochs of 1797 records`},
		{with(first, `[0,3,5,5]`), `piece [0 3 5 5] is not within epochs of 1797 records`},
		{with(`[[0,2]]`, `[]`), `/runs/0/mesh: [] are not ascending ranges of numbers`},
		{with(`[[0,2]]`, `[[0,2],[2,3]]`), `/runs/0/mesh: [[0 2] [2 3]] are not ascending ranges of numbers`},
		{with(`[[0,2]]`, `[[2,0]]`), `/runs/0/mesh: [[2 0]] are not ascending ranges of numbers`},
		{with(`[[1,2]]`, `[[-1,2]]`), `/runs/0/processes/0/0: expected the number of a process from 0 to 9007199254740992, but found -1`},
		{with(`:1797`, `:-1`), `/records: expected a number of records from 0 to 1099511627776, but found -1`},
		{with(`:7`, `:9007199254740993`), `/seed: the number is outside ±2^53 (line 1, byte 102)`},
		{with(`:5440`, `:-5`), `/runs/0/rows: expected a number of rows from 0 to 9007199254740992, but found -5`},
		{with(`"parts":2`, `"parts":-1`), `/runs/0/parts: expected a number of parts from 0 to 2147483648, but found -1`},
		{with(`"parts":2`, `"parts":4294967296`), `/runs/0/parts: expected a number of parts from 0 to 2147483648, but found 4294967296`},
		{with(`0002"`, `0002"`[1:]), `/runs/0/digest: "0000000000000001000000000000002" must have 32 hexadecimal digits`},
		{with(`0e0f"`, `0e0x"`), `/dataset: "000102030405060708090a0b0c0d0e0x" must have 32 hexadecimal digits`},
		{with(`shuffle.1`, strings.Repeat("x", 1025)), `/order: the name of an order is "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…" and has 1025 bytes, but may have 1024; choose a shorter one`},
		{with(first, `[0,1,0,1]`+strings.Repeat(`,[9,1,0,1]`, 9000)), `/runs/0/delivered: the list is longer than 8192`},
		{with(run, run+strings.Repeat(","+run, 1700)), `its runs have more than 8192 pieces`},
		{with(run, run+","+strings.Replace(run, `[[1,2]]`, `[[0,1]]`, 1)), `the runs are not in canonical form`},
		{strings.Repeat(" ", 1<<20+1), `the text has 1048577 bytes, but may have 1048576`},
	} {
		_, err := certificate.Parse([]byte(c.text))
		wantError(t, err, status.InvalidArgument, "certificate: this is not a certificate: "+withHint(c.want))
	}
	_, err := certificate.Parse([]byte(`{"meshfeed":1,"order":"shuffle.1","runs":[[0,1,0,8]]}`))
	wantError(t, err, status.Incompatible, "certificate: the certificate is of version 1, but this release reads version 2; read it with the release that wrote it")
}

// Check refuses a claim that takes too long, before it starts.
func TestHugeClaim(t *testing.T) {
	huge := strings.NewReplacer(`[[0,3,0,1792],[3,1,0,64]]`, `[[0,9007199254740992,0,1797]]`, `[[0,2]]`, `[[1,2]]`, `"dropped":[[0,3,1792,1797]]`, `"dropped":[]`).Replace(text)
	c, err := certificate.Parse([]byte(huge))
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, c.Check(t.Context()), status.ResourceExhausted, "certificate: more than 2^53 rows cannot be checked")
}

// A hostile certificate with runs that all overlap is refused in bounded time.
func TestManyOverlaps(t *testing.T) {
	run := text[strings.Index(text, `{"mesh":`) : len(text)-2]
	var runs []string
	for i := range 1300 {
		r := strings.Replace(run, `[[0,3,0,1792],[3,1,0,64]]`, fmt.Sprintf("[[%d,9000000,%d,%d]]", i, i%700, 1000+i%700), 1)
		runs = append(runs, strings.NewReplacer(`[[0,3,1792,1797]]`, `[]`, `"rows":5440`, fmt.Sprintf(`"rows":%d`, i)).Replace(r))
	}
	c, err := certificate.Parse([]byte(strings.Replace(text, run, strings.Join(runs, ","), 1)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Coverage(certificate.Cursor{}, c.Last()); err != nil {
		wantError(t, err, status.ResourceExhausted, "certificate: the runs overlap in too many pieces; add the certificates of fewer runs at a time")
	} else {
		t.Error("the coverage was worked out")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(text))
	f.Add([]byte(`{"meshfeed":2,"runs":[{"delivered":[[0,1,0,1]]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := certificate.Parse(data)
		if err != nil {
			return
		}
		out, err := c.JSON()
		if err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		again, err := certificate.Parse(out)
		if err != nil || !again.Equal(c) {
			t.Fatalf("%q became %s, %v", data, out, err)
		}
		if _, err := c.Coverage(certificate.Cursor{}, c.Last()); err != nil && status.CodeOf(err) != status.ResourceExhausted {
			t.Fatalf("%q: %v", data, err)
		}
		if twice, err := c.Add(again); err == nil && len(c.Runs()) > 0 && len(twice.Runs()) <= len(c.Runs()) {
			t.Fatalf("%q: the runs of both become one", data)
		}
		if len(c.String()) > 1<<16 {
			t.Fatalf("%q has a text of %d bytes", data, len(c.String()))
		}
	})
}
