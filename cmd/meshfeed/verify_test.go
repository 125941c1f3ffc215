package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// writeColumn writes x.arrow into the working directory, with one column of the
// JSON values.
func writeColumn(t *testing.T, name string, typ arrow.DataType, values string) {
	t.Helper()
	column, _, err := array.FromJSON(memory.DefaultAllocator, typ, strings.NewReader(values))
	if err != nil {
		t.Fatal(err)
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: name, Type: typ}}, nil)
	file, err := os.Create("x.arrow")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w, err := ipc.NewFileWriter(file, ipc.WithSchema(schema))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(array.NewRecord(schema, []arrow.Array{column}, -1)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// verifyHere runs the verb on x.arrow.
func verifyHere(flags ...string) (code int, out, diagnostics string) {
	var o, d bytes.Buffer
	code = run(context.Background(), append([]string{"verify", "x.arrow"}, flags...), strings.NewReader(""), &o, &d)
	return code, o.String(), d.String()
}

// TestVerifySaysWhatItDoesNotCheck checks that a column that is checked only in
// part is listed, in the text and in the JSON, even under a hostile name.
func TestVerifySaysWhatItDoesNotCheck(t *testing.T) {
	t.Chdir(t.TempDir())
	writeColumn(t, "price\n::error::", &arrow.Decimal128Type{Precision: 5, Scale: 2}, `["1.25"]`)
	code, out, diagnostics := verifyHere()
	want := `not checked  "price\n::error::" (decimal128(5, 2)): whether values have at most 5 digits` + "\n"
	if code != exitSuccess || diagnostics != "" || !strings.Contains(out, ": no damage found in what was checked\n"+want) {
		t.Errorf("exit %d, %q\ngot  %s\nwant %s", code, diagnostics, out, want)
	}
	code, out, _ = verifyHere("--json")
	want = `  "not_checked": [
    {
      "column": "price\n::error::",
      "type": "decimal128(5, 2)",
      "what": "whether values have at most 5 digits"
    }
  ],
`
	if code != exitSuccess || !strings.Contains(out, want) {
		t.Errorf("exit %d\ngot  %s\nwant %s", code, out, want)
	}
}

// TestVerifyOfBrokenUTF8 checks that damage in a column that is not an array ends
// the verb.
func TestVerifyOfBrokenUTF8(t *testing.T) {
	t.Chdir(t.TempDir())
	writeColumn(t, "text", arrow.BinaryTypes.String, `["first","second"]`)
	if code, out, _ := verifyHere(); code != exitSuccess || !strings.HasPrefix(out, "2 records in 1 record batch, 1 column, 490 B: no damage found\n") {
		t.Errorf("exit %d: %s", code, out)
	}
	data, err := os.ReadFile("x.arrow")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("x.arrow", bytes.Replace(data, []byte("second"), []byte("sec\xffnd"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	want := `meshfeed: arrowio: x.arrow: record batch 0: column "text": value 1 is not UTF-8
  the data are damaged; write them again
`
	if code, out, diagnostics := verifyHere("--json"); code != exitFailure || !strings.Contains(out, `"code": "DataLoss"`) || diagnostics != want {
		t.Errorf("exit %d, %q\ngot  %s\nwant %s", code, out, diagnostics, want)
	}
}
