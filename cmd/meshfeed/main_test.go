package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/cockroachdb/datadriven"

	"github.com/meshfeed/meshfeed/core/diagnosis"
)

// TestVerbs runs command lines from golden scripts:
//
//	run ARGUMENTS…      the input is standard input
//	file NAME           writes the input to a file that later commands may name
//
// The output is standard output, then standard error, then the exit status unless
// it is 0. HERE replaces the working directory.
func TestVerbs(t *testing.T) {
	testdata, err := filepath.Abs("testdata") // the commands run in another folder
	if err != nil {
		t.Fatal(err)
	}
	datadriven.Walk(t, testdata, func(t *testing.T, path string) {
		here := writeDigits(t)
		t.Chdir(here)
		t.Setenv("XDG_CACHE_HOME", t.TempDir())
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "file":
				if err := os.WriteFile(d.CmdArgs[0].Key, []byte(d.Input), 0o600); err != nil {
					d.Fatalf(t, "%v", err)
				}
				return ""
			case "run":
				return strings.ReplaceAll(runScript(d), here, "HERE")
			}
			d.Fatalf(t, "unknown command %q", d.Cmd)
			return ""
		})
	})
}

func runScript(d *datadriven.TestData) string {
	var args []string
	for _, a := range d.CmdArgs {
		args = append(args, strings.Trim(a.String(), `"`))
	}
	var out, diagnostics bytes.Buffer
	code := run(context.Background(), args, strings.NewReader(d.Input), &out, &diagnostics)
	text := out.String()
	if diagnostics.Len() > 0 {
		text += "stderr: " + diagnostics.String()
	}
	if code != exitSuccess {
		text += fmt.Sprintf("exit %d\n", code)
	}
	return text
}

func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	t.Chdir(writeDigits(t))
	var out, diagnostics bytes.Buffer
	code := run(ctx, []string{"verify", "train-0.arrow"}, strings.NewReader(""), &out, &diagnostics)
	if code != exitInterrupted || diagnostics.String() != "meshfeed: interrupted\n" {
		t.Errorf("got exit %d and %q", code, diagnostics.String())
	}
}

// TestInterruptOfABlockedRun interrupts a run that never ends, for example one
// that reads a terminal.
func TestInterruptOfABlockedRun(t *testing.T) {
	ctx, interrupt := context.WithCancel(context.Background())
	interrupt()
	var diagnostics bytes.Buffer
	code := exitStatus(ctx, make(chan int), &diagnostics)
	if code != exitInterrupted || diagnostics.String() != "meshfeed: interrupted\n" {
		t.Errorf("got exit %d and %q", code, diagnostics.String())
	}
}

// full is a writer. Its first write fails, because the disk is full.
type full struct{ space bool }

func (f *full) Write(b []byte) (int, error) {
	if !f.space {
		f.space = true
		return 0, syscall.ENOSPC
	}
	return len(b), nil
}

// TestLostOutput checks that a verb fails if its output cannot be written.
func TestLostOutput(t *testing.T) {
	t.Chdir(writeDigits(t))
	layout := `{"meshfeed":1,"mesh":{"axes":[["data",2]]},"arrays":{"label":{"shape":["B"],"dtype":"int32"}},"batch":{"size":4}}`
	for _, line := range []string{
		"--version", "inspect train-0.arrow", "inspect --json train-0.arrow", "verify --hash train-0.arrow", "verify --json train-0.arrow",
		"plan -", "plan --json -", "plan --svg -", "check -", "check - -", "check --json -", "check --format github -",
		"bench --time 1ms - train-0.arrow", "bench --time 1ms --json - train-0.arrow", "devices go", "devices go --json",
		"advise --list", "advise llama3-8b --devices 8 --device h100-80", "advise gpt2 --devices 1 --device l4-24 --json",
	} {
		var diagnostics bytes.Buffer
		code := run(context.Background(), strings.Fields(line), strings.NewReader(layout), &full{}, &diagnostics)
		if code != exitFailure || diagnostics.String() != "meshfeed: no space left on device\n" {
			t.Errorf("%s: got exit %d and %q", line, code, diagnostics.String())
		}
	}
}

func TestBench(t *testing.T) {
	dir := writeDigits(t)
	layout := `{"meshfeed":1,"mesh":{"axes":[["data",2]]},"arrays":{"image":{"shape":["B",2,2],"dtype":"float32","spec":["data"]}},"batch":{"size":4}}`
	path := filepath.Join(dir, "layout.json")
	if err := os.WriteFile(path, []byte(layout), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, diagnostics bytes.Buffer
	args := []string{"bench", "--time", "30ms", "--json", path, filepath.Join(dir, "train-*.arrow")}
	if code := run(context.Background(), args, strings.NewReader(""), &out, &diagnostics); code != exitSuccess {
		t.Fatalf("exit %d: %s", code, diagnostics.String())
	}
	var m measurement
	if err := json.Unmarshal(out.Bytes(), &m); err != nil {
		t.Fatal(err)
	}
	var report struct {
		Waited    float64
		Sentences []string
		Parts     []struct{ Name string }
	}
	if err := json.Unmarshal(m.Report, &report); err != nil || len(report.Sentences) != 3 || !strings.HasPrefix(report.Sentences[0], "In ") {
		t.Errorf("the report: %v, %q", err, report.Sentences)
	}
	if len(report.Parts) == 0 || report.Waited != 1 || report.Parts[0].Name != "wait" || report.Parts[1].Name != "build" {
		t.Errorf("the loop does more than wait: %+v", report)
	}
	if m.Rows != int64(4*m.Batches) || m.Bytes != 16*m.Rows || m.P50 > m.P99 {
		t.Errorf("the numbers do not fit together: %+v", m)
	}
}

// TestBenchOfBytes measures binary values as arrays of a shape and a type, which the flag gives.
func TestBenchOfBytes(t *testing.T) {
	t.Chdir(t.TempDir())
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{{Name: "image", Type: arrow.BinaryTypes.Binary}}, nil))
	for range 8 {
		b.Field(0).(*array.BinaryBuilder).Append(make([]byte, 16*16*3*4))
	}
	writeRecords(t, "raw.arrow", b.NewRecord())
	layout := `{"meshfeed":1,"mesh":{"axes":[["data",2]]},"arrays":{"image":{"shape":["B",16,16,3],"dtype":"float32","spec":["data"]}},"batch":{"size":4}}`
	for _, c := range []struct{ shapes, want string }{
		{"image=16x16x3:float32", ""},
		{"image=16x16x3", `array "image" is float32, but field "image" is uint8`},
		{"image=16x16x3:float64", "has 3072 bytes, but rows of shape [16 16 3] and type float64 have 6144"},
		{"image=16x16x3:bool", `field "image" holds bytes, which cannot be read as bool`},
		{"image=16x16x3:float", `invalid argument "image=16x16x3:float" for "--shapes" flag`},
	} {
		var out, diagnostics bytes.Buffer
		code := run(t.Context(), []string{"bench", "--time", "10ms", "--json", "--shapes", c.shapes, "-", "raw.arrow"}, strings.NewReader(layout), &out, &diagnostics)
		if (code == exitSuccess) != (c.want == "") || !strings.Contains(diagnostics.String(), c.want) {
			t.Errorf("%s: exit %d: %s", c.shapes, code, diagnostics.String())
		}
		var m measurement
		if err := json.Unmarshal(out.Bytes(), &m); c.want == "" && (err != nil || m.Rows == 0 || m.Bytes != 3072*m.Rows) {
			t.Errorf("%v: %+v", err, m)
		}
	}
}

func TestNumbers(t *testing.T) {
	for got, want := range map[string]string{
		grouped(0): "0", grouped(999): "999", grouped(1797): "1,797", grouped(-1234567): "-1,234,567",
		sized(0): "0 B", sized(1023): "1023 B", sized(1536): "1.5 KiB", sized(3 << 40): "3.0 TiB",
		counted(1, "record batch"): "1 record batch", counted(1000, "record batch"): "1,000 record batches",
		shapeText(nil): "scalar", shapeText([]int{8, 8}): "8 × 8", spent(0.00012345): "123µs", spent(1.5): "1.5s",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// The wait for a batch that is ready is short, so the median wait is not the
// time between batches.
func TestBenchPrintsTheTimeBetweenBatches(t *testing.T) {
	m := measurement{
		Order: "shuffle.1", Batches: 1000, Rows: 8000, Bytes: 1 << 20, Seconds: 2, RowsPerSecond: 4000, BytesPerSec: 1 << 19,
		P50: 1e-6, P99: 3e-3, First: 0.5, FirstDecode: 0.4, Decoding: 0.7, Gather: 1.5e-3, Copy: 1e-3,
		diagnosis: &diagnosis.Report{Sentences: []string{"Gathering bounds it."}},
	}
	var out bytes.Buffer
	if err := m.print(&out); err != nil {
		t.Fatal(err)
	}
	want := `process 0, 1,000 batches in 2.00 s, order shuffle.1

  4,000 rows per second, 512.0 KiB per second
  a batch every 2ms; waits: median 1µs, p99 3ms, for the first 500ms
  gathering takes 1.5ms per batch, a plain copy of its bytes 1ms
  decompressing took 700ms of processor time in all; the first batch waited 400ms for it

Gathering bounds it.

part          a batch of the time
`
	if out.String() != want {
		t.Errorf("got %s\nwant %s", out.String(), want)
	}
}

// TestHintsNameFlags: the packages say what a program in Python gives, and the command what it takes.
func TestHintsNameFlags(t *testing.T) {
	for hint, want := range map[string]string{
		`choose one with split="train", or open d/*`:                            `choose one with --split train, or open d/*`,
		`pass duplicates="allow" (Go: Duplicates, C: MF_ALLOW_DUPLICATES), now`: `pass --duplicates allow, now`,
		`Options.Process is 3; set loader.Options.MaxHostBytes`:                 `--process is 3; set --max-host-bytes`,
		`choose one with split="a b"`:                                           `choose one with split="a b"`,
		`use order="blocks"`:                                                    `use order="blocks"`,
		`choose columns=["a", "b c"], or open`:                                  `choose --columns "a,b c", or open`,
		`leave it out (columns=), or`:                                           `leave it out (--columns), or`,
	} {
		if got := asFlags(hint); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestBlanksInLists: a list has the same meaning with blanks around its entries.
func TestBlanksInLists(t *testing.T) {
	t.Chdir(writeDigits(t))
	said := func(args []string) string {
		var out, diagnostics bytes.Buffer
		if code := run(t.Context(), args, nil, &out, &diagnostics); code != exitSuccess {
			t.Errorf("%q: exit %d\n%s", args, code, diagnostics.String())
		}
		return out.String()
	}
	blank := strings.NewReplacer(",", " , ", "=", " = ", "+", " + ", ":", " : ")
	for _, args := range [][]string{
		{"plan", "--axes", "data=2,model=2", "--batch", "8", "--array", "x=B,4:float32:data+model,-"},
		{"plan", "--axes", "data=2", "--dims", "0,1", "--array", "x=B,4:float32", "--batch=4"},
		{"draw", "mesh", "data=2,model=2"},
		{"draw", "matmul", "--mesh", "a=2,b=2", "--x", "8,16", "--x-spec", "a,b", "--w", "16,4", "--w-spec", "b,-"},
		{"inspect", "train-0.arrow", "--columns", "label,image"},
	} {
		spaced := slices.Clone(args)
		for i, arg := range args {
			if !strings.HasPrefix(arg, "--") {
				spaced[i] = blank.Replace(arg)
			}
		}
		if got, want := said(spaced), said(args); got != want {
			t.Errorf("%q prints\n%s\nand without blanks\n%s", spaced, got, want)
		}
	}
	if got := said([]string{"inspect", "train-0.arrow", "--columns", `"label","image"`}); !strings.Contains(got, "image") {
		t.Errorf("quoted names select %s", got)
	}
}

// TestSizes: sizes have the forms that the layout page reads.
func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{
		"1000": 1000, "1e9": 1e9, "1.5E9": 15e8, "1_000": 1000, "1GB": 1e9, "512MiB": 512 << 20, " 2 gib ": 2 << 30, "2 GiB": 2 << 30, "80 G": 80e9, "1.5kB": 1500, "12B": 12, "-3": -3,
		"": 0, "1.5": 0, "1e20": 0, "9e": 0, "many": 0, "1ZB": 0, "1e999": 0, "100P": 0,
	} {
		var f sizeFlag
		err := f.Set(text)
		if refused := want == 0; int64(f) != want || (err != nil) != refused || refused && err != errSize {
			t.Errorf("%q is %d, %v, want %d", text, f, err, want)
		}
	}
}

func TestDiagramAsJSON(t *testing.T) {
	var out, diagnostics bytes.Buffer
	code := run(t.Context(), []string{"draw", "mesh", "data=2", "--json"}, strings.NewReader(""), &out, &diagnostics)
	var d struct{ Text, SVG string }
	if err := json.Unmarshal(out.Bytes(), &d); err != nil || code != exitSuccess || !strings.HasPrefix(d.Text, "Groups of Mesh('data': 2)\n") || !strings.HasPrefix(d.SVG, "<svg ") {
		t.Errorf("exit %d, %v\n%s%s", code, err, out.String(), diagnostics.String())
	}
}
