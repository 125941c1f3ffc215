package certificate_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/certificate"
	"github.com/meshfeed/meshfeed/core/status"
)

const text = `{"meshfeed":1,"order":"shuffle.1","dataset":"000102030405060708090a0b0c0d0e0f","records":1797,"seed":7,` +
	`"runs":[[0,3,0,1792],[3,1,0,64]],"rows":5440,"digest":"00000000000000010000000000000002"}`

func sample() certificate.Certificate {
	c := certificate.Certificate{Sequence: sequence(1797)}
	for epoch := range int64(3) {
		c.Delivered(epoch, 0, 1792, certificate.Tally{Rows: 1792})
	}
	c.Delivered(3, 0, 64, certificate.Tally{Rows: 64, Digest: certificate.Digest{High: 1, Low: 2}})
	return c
}

func TestJSON(t *testing.T) {
	got, err := sample().JSON()
	if err != nil || string(got) != text {
		t.Errorf("got  %s, %v\nwant %s", got, err, text)
	}
	back, err := certificate.Parse([]byte(text))
	if err != nil || !back.Equal(sample()) {
		t.Errorf("read as %+v, %v", back, err)
	}
	var inside struct{ Saved certificate.Certificate }
	if err := json.Unmarshal([]byte(`{"Saved":`+text+`}`), &inside); err != nil || !inside.Saved.Equal(back) {
		t.Errorf("inside another document: %+v, %v", inside, err)
	}
	empty, err := certificate.Certificate{Sequence: sequence(5)}.JSON()
	if err != nil || !strings.Contains(string(empty), `"runs":[],"rows":0`) {
		t.Errorf("one that claims nothing: %s, %v", empty, err)
	}
}

// What other writers make of it: spaces, another order of keys.
func TestJSONOfOtherWriters(t *testing.T) {
	var values map[string]any
	if err := json.Unmarshal([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	spaced, err := json.MarshalIndent(values, "", "    ")
	if err != nil {
		t.Fatal(err)
	}
	if c, err := certificate.Parse(spaced); err != nil || !c.Equal(sample()) {
		t.Errorf("read as %+v, %v", c, err)
	}
}

func TestParseRefused(t *testing.T) {
	with := func(old, new string) string { return strings.Replace(text, old, new, 1) }
	const other = "a key is missing, unknown or twice there, or runs are not in canonical form"
	for _, c := range []struct{ text, want string }{
		{"", "unexpected end of JSON input"},
		{text + "{}", "invalid character '{' after top-level value"},
		{with(`"seed":7,`, ``), other},
		{with(`"seed":7`, `"seed":7,"seed":7`), other},
		{with(`"seed"`, `"Seed"`), other},
		{with(`"seed":7`, `"seed":7,"mesh":1`), other},
		{with(`"seed":7`, `"seed":7e0`), `json: cannot unmarshal number 7e0 into Go struct field document.seed of type int64`},
		{with(`[0,3,0,1792]`, `[0,3,0,1792,9]`), other},
		{with(`[0,3,0,1792]`, `[0,3,0]`), `run [0 3 0 0] is not within epochs of 1797 records`},
		{with(`[0,3,0,1792]`, `[0,3,0,1000],[0,3,1000,1792]`), other},
		{with(`[0,3,0,1792],[3,1,0,64]`, `[3,1,0,64],[0,3,0,1792]`), other},
		{with(`[0,3,0,1792]`, `[0,4,0,1792]`), other},
		{with(`[0,3,0,1792]`, `[-1,3,0,1792]`), `run [-1 3 0 1792] is not within epochs of 1797 records`},
		{with(`[0,3,0,1792]`, `[0,0,0,1792]`), `run [0 0 0 1792] is not within epochs of 1797 records`},
		{with(`[0,3,0,1792]`, `[0,3,0,1798]`), `run [0 3 0 1798] is not within epochs of 1797 records`},
		{with(`[0,3,0,1792]`, `[0,3,5,5]`), `run [0 3 5 5] is not within epochs of 1797 records`},
		{with(`:1797`, `:-1`), `-1 records, seed 7 or 5440 rows are out of bounds`},
		{with(`:7`, `:9007199254740993`), `1797 records, seed 9007199254740993 or 5440 rows are out of bounds`},
		{with(`:5440`, `:-5`), `1797 records, seed 7 or -5 rows are out of bounds`},
		{with(`0002"`, `0002"`[1:]), `dataset "000102030405060708090a0b0c0d0e0f" and digest "0000000000000001000000000000002" must have 32 hexadecimal digits`},
		{with(`0e0f"`, `0e0x"`), `dataset "000102030405060708090a0b0c0d0e0x" and digest "00000000000000010000000000000002" must have 32 hexadecimal digits`},
		{with(`shuffle.1`, strings.Repeat("x", 65)), `the name of the order has 65 bytes`},
		{with(`[0,3,0,1792]`, `[0,3,0,1792]`+strings.Repeat(`,[9,1,0,1]`, 5000)), `there are 5002 runs, but may be 4096`},
		{strings.Repeat(" ", 1<<20+1), `the text has 1048577 bytes, but may have 1048576`},
	} {
		_, err := certificate.Parse([]byte(c.text))
		wantError(t, err, status.InvalidArgument, "certificate: this is not a certificate: "+c.want+"; pass on what a loader gave, unchanged")
	}
	_, err := certificate.Parse([]byte(with(`"meshfeed":1`, `"meshfeed":2`)))
	wantError(t, err, status.Incompatible, "certificate: the certificate is of version 2, but this release reads version 1; read it with the release that wrote it")
}

// A claim too long to check is refused, not begun.
func TestHugeClaim(t *testing.T) {
	huge := strings.Replace(text, `[[0,3,0,1792],[3,1,0,64]]`, `[[0,9007199254740992,0,1797]]`, 1)
	c, err := certificate.Parse([]byte(huge))
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, c.Check(t.Context()), status.ResourceExhausted, "certificate: more than 2^53 positions cannot be checked")
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(text))
	f.Add([]byte(`{"runs":[[0,1,0,1]]}`))
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
	})
}
