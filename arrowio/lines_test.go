package arrowio_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/arrowio/blob/blobtest"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/source/sourcetest"
	"github.com/meshfeed/meshfeed/core/status"
)

// row is a line of a test. A key that is not there is null.
type row struct {
	N     int64     `json:"n"`
	X     float64   `json:"x"`
	Yes   bool      `json:"yes"`
	Text  *string   `json:"text,omitempty"`
	List  []int64   `json:"list"`
	Image [][]int64 `json:"image"`
	Words []string  `json:"words"`
	Seven *int64    `json:"seven,omitempty"`
	Chat  []any     `json:"chat"`
}

// randomRows returns rows of all types that lines have.
func randomRows(n int) []row {
	rng, rows := rand.New(rand.NewPCG(1, 2)), make([]row, n)
	for i := range rows {
		r := row{N: rng.Int64() - 1<<62, X: rng.NormFloat64(), Yes: rng.IntN(2) == 0, List: []int64{}, Words: []string{}, Chat: []any{map[string]any{"role": "user"}}}
		if rng.IntN(3) > 0 {
			text := strings.Repeat("\"ä\\😀\n", rng.IntN(200))
			r.Text = &text
		}
		if seven := int64(7); rng.IntN(3) > 0 {
			r.Seven = &seven
		}
		for range rng.IntN(30) {
			r.List, r.Words = append(r.List, int64(rng.IntN(50000))), append(r.Words, fmt.Sprint(rng.IntN(9)))
		}
		r.Image = [][]int64{{int64(i), 1, 2}, {3, 4, 5}}
		rows[i] = r
	}
	return rows
}

// linesOf writes rows as lines, some of which are empty.
func linesOf(t *testing.T, rows []row) []byte {
	var out bytes.Buffer
	for i, r := range rows {
		line, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(line)
		out.WriteString([]string{"\n", "\r\n", " \t\n\n", "\n"}[i%4])
	}
	return out.Bytes()
}

func gzipped(data []byte) []byte {
	var out bytes.Buffer
	for _, half := range [][]byte{data[:len(data)/2], data[len(data)/2:]} { // members are joined
		w := gzip.NewWriter(&out)
		_, _ = w.Write(half)
		_ = w.Close()
	}
	return out.Bytes()
}

func zstded(data []byte) []byte {
	w, _ := zstd.NewWriter(nil)
	return w.EncodeAll(data[len(data)/3:], w.EncodeAll(data[:len(data)/3], nil))
}

func saveLines(t *testing.T, name string, data []byte) string {
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestLines runs the tests of sources on JSON Lines, plain and compressed, and compares all values.
func TestLines(t *testing.T) {
	rows := randomRows(1200)
	text := linesOf(t, rows)
	if len(text) < 9<<17 {
		t.Fatalf("%d bytes are one unit", len(text))
	}
	var prints []source.Fingerprint
	for _, c := range []struct {
		name string
		data []byte
	}{{"a.jsonl", text}, {"a.jsonl.gz", gzipped(text)}, {"a.json.zst", zstded(text)}, {"a.txt", bytes.TrimRight(text, "\n")}, {"bom.ndjson", append([]byte("\ufeff"), text...)}} {
		t.Run(c.name, func(t *testing.T) {
			path := saveLines(t, c.name, c.data)
			for _, o := range []arrowio.Options{{Cache: "memory"}, {Cache: t.TempDir(), Shapes: map[string][]int{"image": {2, 3}}}, {Opener: blobtest.Memory{path: c.data}}} {
				ds, err := arrowio.OpenFiles(t.Context(), []string{path}, o)
				if err != nil {
					t.Fatal(err)
				}
				compareRows(t, ds, rows)
				prints = append(prints, verified(t, ds))
				if skipped := ds.Schema().Skipped; len(skipped) != 1 || skipped[0].Name != "chat" {
					t.Errorf("skipped: %v", skipped)
				}
				_ = ds.Close()
			}
		})
	}
	if slices.ContainsFunc(prints[:6], func(p source.Fingerprint) bool { return p != prints[0] }) {
		t.Errorf("a compressed text has other fingerprints than the text: %v", prints)
	}
	few := [2]string{saveLines(t, "a.jsonl", linesOf(t, rows[:40])), saveLines(t, "b.jsonl.gz", gzipped(linesOf(t, rows[40:60])))}
	sourcetest.Run(t, func(t *testing.T) source.Source {
		ds, err := arrowio.OpenFiles(t.Context(), few[:], arrowio.Options{Cache: "memory"})
		if err != nil {
			t.Fatal(err)
		}
		return ds
	})
}

// compareRows reads some records, and compares them with rows.
func compareRows(t *testing.T, ds *arrowio.Dataset, rows []row) {
	t.Helper()
	if ds.Len() != int64(len(rows)) {
		t.Fatalf("%d records, not %d", ds.Len(), len(rows))
	}
	fields := ds.Schema().Fields
	everySpan(t, ds, func(spans []source.Span) error {
		for i := range spans {
			got := spans[i]
			got.Field, got.Record = 0, 0
			if want := lineSpan(&fields[spans[i].Field], &rows[spans[i].Record]); !reflect.DeepEqual(got, want) {
				return fmt.Errorf("field %q, record %d: %v, not %v", fields[spans[i].Field].Name, spans[i].Record, got, want)
			}
		}
		return nil
	})
}

// lineSpan returns a field of a row as a reader returns it.
func lineSpan(f *source.Field, r *row) (s source.Span) {
	s.Row = []byte{}
	switch f.Name {
	case "n":
		s.Row = numbers(r.N)
	case "x":
		s.Row = numbers(int64(math.Float64bits(r.X)))
	case "yes":
		s.Row = []byte{0}
		if r.Yes {
			s.Row[0] = 1
		}
	case "text":
		if s.Row = nil; r.Text != nil {
			s.Row = []byte(*r.Text)
		}
	case "list":
		s.Row = numbers(r.List...)
	case "image":
		if s.Row = numbers(slices.Concat(r.Image...)...); f.Ragged > 0 {
			s.Lists = [][]int64{{3, 3}}
		}
	case "words":
		s.Lists = [][]int64{{}}
		for _, word := range r.Words {
			s.Row, s.Lists[0] = append(s.Row, word...), append(s.Lists[0], int64(len(word)))
		}
	case "seven":
		if s.Row = nil; r.Seven != nil {
			s.Row = numbers(*r.Seven)
		}
	}
	return s
}

func numbers(list ...int64) []byte {
	out := []byte{}
	for _, n := range list {
		out = binary.LittleEndian.AppendUint64(out, uint64(n))
	}
	return out
}

// TestLinesRefused gives bad files. Each error names the file, the line, and what to do.
func TestLinesRefused(t *testing.T) {
	first := `{"a": 1, "b": [1], "c": 1.5, "t": "` + strings.Repeat("x", 1000) + `"}` + "\n"
	long := strings.Repeat(first, 1<<20/len(first)+1) // the lines after the sample
	after := strings.Count(long, "\n") + 1
	for _, c := range []struct {
		name, text string
		code       status.Code
		want       string
	}{
		{"a.jsonl", "", status.DataLoss, "is empty"},
		{"a.jsonl", " \n\r\n", status.DataLoss, "all lines are empty; write one object per line"},
		{"a.jsonl", first + "[1]\n", status.DataLoss, "line 2: expected an object, but found a list; write one object per line"},
		{"a.jsonl", "{\n  \"a\": 1\n}\n", status.DataLoss, "line 1 is not JSON: expected a key in quotes, but the text ends (at byte 1); write one object per line"},
		{"a.json", "{\n  \"a\": 1\n}\n", status.Unsupported, "it is JSON; mf.open reads it if each line is one object: write it so"},
		{"a.jsonl", first + "{\"a\": 1, \"a\": 2}\n", status.DataLoss, `line 2: the key "a" occurs twice; write each key once`},
		{"a.jsonl", first + "{\"t\": \"\xff\"}\n", status.DataLoss, "line 2 is not JSON: the byte 0xff is not UTF-8 (at byte 7)"},
		{"a.jsonl", first + `{"t": "\ud83d"}`, status.DataLoss, `\ud83d is half of a surrogate pair`},
		{"a.jsonl", first + `{"c": NaN}`, status.DataLoss, "line 2 is not JSON: expected a value, but found 'N' (at byte 6); write one object per line, in UTF-8; NaN and Infinity are no JSON: write null"},
		{"a.jsonl", first + `{"a": 1`, status.DataLoss, "line 2 is not JSON: expected ',' or '}', but the text ends"},
		{"a.jsonl", first + strings.Repeat(`{"d":`, 300), status.DataLoss, "line 2 is not JSON: values are nested deeper than 256"},
		{"a.jsonl", first + strings.Repeat("x", 64<<20+1), status.Unsupported, "line 2 has more than 67108864 bytes; write one object per line"},
		{"a.jsonl", manyKeys(2049), status.Unsupported, "line 1: the objects have more than 2048 keys"},
		{"a.jsonl", long + `{"a": "x"}`, status.Incompatible, fmt.Sprintf(`line %d: "a" has "x" where the first lines have integers of 64 bits; write the file again`, after)},
		{"a.jsonl", long + `{"a": 1.0}`, status.Incompatible, `"a" has 1.0 where`},
		{"a.jsonl", long + `{"a": 9223372036854775808}`, status.Incompatible, `"a" has 9223372036854775808 where`},
		{"a.jsonl", long + `{"b": [1, [2]]}`, status.Incompatible, `"b" has [2] where the first lines have integers of 64 bits`},
		{"a.jsonl", long + `{"c": 1e999}`, status.Incompatible, `"c" has 1e999 where the first lines have numbers`},
		{"a.jsonl", long + "\n\n" + `{"new": 1}`, status.Incompatible, fmt.Sprintf(`line %d: the key "new" has a value, but none in the first 1 MiB of the file`, after+2)},
		{"a.jsonl.gz", string(gzipped([]byte(long))[:200]), status.DataLoss, "the compressed text is damaged or cut short after"},
		{"a.jsonl.gz", "\x1f\x8b", status.DataLoss, "cut short after 0 bytes of text: unexpected EOF; write or copy the file again"},
		{"a.jsonl.zst", string(zstded([]byte(long))[:90]), status.DataLoss, "the compressed text is damaged or cut short after"},
	} {
		path := saveLines(t, c.name, []byte(c.text))
		ds, err := arrowio.OpenFiles(t.Context(), []string{path}, arrowio.Options{Cache: "memory"})
		if err == nil {
			_, err = ds.Verify(t.Context(), arrowio.VerifyOptions{})
			_ = ds.Close()
		}
		if status.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%.60q: got %v: %v, want %v: %s", c.text, status.CodeOf(err), err, c.code, c.want)
		}
	}
}

func manyKeys(n int) string {
	keys := map[string]int{}
	for i := range n {
		keys[fmt.Sprint(i)] = i
	}
	text, _ := json.Marshal(keys)
	return string(text)
}

// TestLinesOfManyFiles opens directories, globs, and files that disagree.
func TestLinesOfManyFiles(t *testing.T) {
	line := func(text string) []byte { return []byte(text + "\n") }
	long := bytes.Repeat(line(`{"a": 1, "l": []}`), 1<<16)
	memory := blobtest.Memory{
		"dir/a.jsonl": line(`{"a": 1, "l": []}`), "dir/b.ndjson": line("{\"l\": [2], \"x\": null}\n{\"a\": 2}"), "dir/c.json.gz": gzipped(line(`{"a": 3}`)),
		"dir/notes.json": line(`{"a": "not data"}`), "dir/_hidden.jsonl": line(`{"a": "hidden"}`),
		"nulls/a.jsonl": line(`{"a": 1, "l": [1]}`), "nulls/b.jsonl": line(`{"a": 2, "l": []}`), "nulls/c.jsonl": line(`{"a": null, "l": null}`),
		"types/a.jsonl": line(`{"a": 1}`), "types/b.jsonl": line(`{"a": 1.5}`),
		"late/a.jsonl": line(`{"a": 1, "l": [1]}`), "late/b.jsonl": append(long, line(`{"a": 2, "l": [7]}`)...),
		"splits/train.jsonl": line(`{"a": 1}`), "splits/test.jsonl": line(`{"a": 2}`),
		"twice/a.jsonl": line(`{"a": 1}`), "twice/a.jsonl.gz": gzipped(line(`{"a": 1}`)),
		"beside/a.npy": saveNPY("<i8", "False", "(1,)", make([]byte, 8)), "beside/a.jsonl": line(`{"a": 1}`),
		"more/a.jsonl": append(bytes.Repeat(line(`{"a": 1}`), 1<<17), line(`{"a": 5, "new": "x"}`)...),
	}
	for _, c := range []struct {
		pattern string
		o       arrowio.Options
		want    string // the values of a, or an error
	}{
		{"dir", arrowio.Options{Columns: []string{"a"}}, "[1 null 2 3]"},
		{"dir/*.jsonl", arrowio.Options{Columns: []string{"a"}}, "[1]"},
		{"nulls/c.jsonl", arrowio.Options{}, `the dataset has no field "a"`},
		{"nulls/[ab].jsonl", arrowio.Options{}, "[1 2]"},
		{"nulls", arrowio.Options{}, `nulls/c.jsonl: there is no column "a", which nulls/a.jsonl has`},
		{"types", arrowio.Options{}, `types/b.jsonl: field "a" is float64, but int64 in types/a.jsonl`},
		{"late", arrowio.Options{}, `late/b.jsonl: line 65537: "l" has 7 where the first lines have nulls`},
		{"splits", arrowio.Options{}, `the directory has the splits test, train; choose one`},
		{"splits", arrowio.Options{Split: "test"}, "[2]"},
		{"twice", arrowio.Options{}, "twice/a.jsonl.gz (path 1, \"twice\") have one name and two formats"},
		{"beside", arrowio.Options{}, `the fields are "tokens"`},
		{"more", arrowio.Options{}, `more/a.jsonl: line 131073: the key "new" has a value`},
		{"more", arrowio.Options{Columns: []string{"a"}}, "[1 5]"},
	} {
		c.o.Opener = memory
		got := valuesOf(t, c.pattern, c.o)
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: got %s, want %s", c.pattern, got, c.want)
		}
	}
}

// valuesOf returns the different values of field a, or the error of the opening or of a read of all fields.
func valuesOf(t *testing.T, pattern string, o arrowio.Options) string {
	ds, err := arrowio.OpenFiles(t.Context(), []string{pattern}, o)
	if err != nil {
		return err.Error()
	}
	defer ds.Close()
	a, err := ds.Schema().Find("a")
	if err != nil {
		return err.Error()
	}
	r, err := ds.Reader([]int{a})
	if err != nil {
		return err.Error()
	}
	defer r.Close()
	var spans []source.Span
	for record := range ds.Len() {
		spans = append(spans, source.Span{Field: a, Record: record})
	}
	var out []string
	err = r.Read(t.Context(), source.Draw{}, spans, func() error {
		for i := range spans {
			value := "null"
			if !spans[i].Null() {
				value = fmt.Sprint(binary.LittleEndian.Uint64(spans[i].Row))
			}
			if !slices.Contains(out, value) {
				out = append(out, value)
			}
		}
		return nil
	})
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(out)
}

// TestLinesAreMadeOnce checks what is kept of a file in the folder: the text of a compressed file, and
// the positions of lines. A damaged entry is made again. A folder without room is not used.
func TestLinesAreMadeOnce(t *testing.T) {
	text := bytes.Repeat([]byte(`{"a": 1, "text": "`+strings.Repeat("x", 8000)+`"}`+"\n"), 2100)
	path, folder := saveLines(t, "a.jsonl.gz", gzipped(text)), t.TempDir()
	plain := saveLines(t, "a.jsonl", text)
	open := func(o arrowio.Options) (source.Fingerprint, error) {
		var print source.Fingerprint
		for _, path := range []string{path, plain} {
			ds, err := arrowio.OpenFiles(t.Context(), []string{path}, o)
			if err != nil {
				return print, err
			}
			if print, err = ds.Fingerprint(t.Context()); err != nil || ds.Len() != 2100 {
				t.Error(err, ds.Len())
			}
			_ = ds.Close()
		}
		return print, nil
	}
	entries := func() map[string]os.FileInfo {
		found := map[string]os.FileInfo{}
		list, _ := filepath.Glob(filepath.Join(folder, "*.units"))
		for _, name := range list {
			found[name], _ = os.Stat(name)
		}
		return found
	}
	first, err := open(arrowio.Options{Cache: folder})
	made := entries()
	if err != nil || len(made) != 3 {
		t.Fatal(err, made)
	}
	cache, err := arrowio.OpenCache(folder)
	if err != nil {
		t.Fatal(err)
	}
	list, err := cache.Entries()
	if err != nil || !slices.ContainsFunc(list, func(e arrowio.CacheEntry) bool {
		return strings.HasPrefix(path, strings.TrimSuffix(e.Dataset, "…")) && e.Columns == "text 1"
	}) {
		t.Errorf("the folder lists %v, %v", list, err)
	}
	for name := range made { // a cut entry, and an entry with other bytes
		if err := os.Truncate(name, made[name].Size()-1); err != nil {
			t.Fatal(err)
		}
	}
	second, err := open(arrowio.Options{Cache: folder})
	again := entries()
	if err != nil || second != first || len(again) != 3 {
		t.Fatal(err, again)
	}
	if third, err := open(arrowio.Options{Cache: folder}); err != nil || third != first {
		t.Error(err)
	}
	for name, info := range entries() {
		if info.Size() != made[name].Size() || !info.ModTime().Equal(again[name].ModTime()) {
			t.Errorf("%s is not made again, or is made when it is whole", name)
		}
	}
	if third, err := open(arrowio.Options{Cache: "memory"}); err != nil || third != first {
		t.Error(err)
	}
	if _, err := open(arrowio.Options{Cache: t.TempDir(), CacheBytes: 1 << 20}); err != nil {
		t.Error("a folder without room:", err)
	}
}

// FuzzLines opens arbitrary text. What opens has rows that can all be read, or an error names a line.
func FuzzLines(f *testing.F) {
	for _, text := range []string{`{"a": 1}`, "{\"a\": [[1], []], \"b\": \"\\u00e4\"}\r\n\n{\"a\": null}", "\ufeff{\"x\": 1e5}\n{\"x\": 3}", "{}\n{\"a\":[\"x\",null]}"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		ds, err := arrowio.OpenFiles(t.Context(), []string{"a.jsonl"}, arrowio.Options{Opener: blobtest.Memory{"a.jsonl": text}})
		if err != nil {
			if status.CodeOf(err) == status.Internal {
				t.Error(err)
			}
			return
		}
		defer ds.Close()
		records := 0
		for line := range bytes.Lines(bytes.TrimPrefix(text, []byte("\ufeff"))) {
			if line = bytes.Trim(line, " \t\r\n"); len(line) == 0 {
				continue
			}
			if records++; !json.Valid(line) {
				t.Fatalf("%q is not JSON, but opens", line)
			}
		}
		if ds.Len() != int64(records) {
			t.Errorf("%d records, not %d", ds.Len(), records)
		}
		if _, err := ds.Verify(t.Context(), arrowio.VerifyOptions{}); err != nil && !strings.Contains(err.Error(), "occurs twice") {
			t.Errorf("one unit was parsed when the file was opened: %v", err)
		}
	})
}
