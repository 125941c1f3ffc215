package arrowio_test

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/ipc"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/status"
)

const renameIt = "; do not write to a file while it is read: write another and rename it; open the dataset again to read what the file holds now"

// TestOverwrittenAfterOpen overwrites an open file with the same size and another
// modification time. At most a second later every gather is an error, for every way
// of reading.
func TestOverwrittenAfterOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := time.Date(2020, 5, 6, 7, 8, 9, 0, time.UTC)
		for name, c := range map[string]struct {
			io      string
			options []ipc.Option
		}{"map": {"map", nil}, "read": {"read", nil}, "decoded": {"read", []ipc.Option{ipc.WithLZ4()}}} {
			path := temp(t, name+".arrow")
			rows := []int{10, 10, 10}
			schema := arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Int64}}, nil)
			save(t, path, false, schema, rows, 1, c.options...)
			setTime(t, path, old)
			ds, err := arrowio.OpenFiles(t.Context(), []string{path}, arrowio.Options{IO: c.io})
			if err != nil {
				t.Fatal(err)
			}
			f := ds.Schema().Fields[0]
			if _, err := gatherField(ds, 0, f, []int64{3}); err != nil {
				t.Fatal(err)
			}
			overwrite(t, path)
			setTime(t, path, old.Add(time.Minute))
			time.Sleep(time.Second)
			_, err = gatherField(ds, 0, f, []int64{13})
			want := "arrowio: " + path + " has changed since it was opened: its modification time is 2020-05-06T07:09:09Z, and was 2020-05-06T07:08:09Z" + renameIt
			if err == nil || err.Error() != want || status.CodeOf(err) != status.DataLoss {
				t.Errorf("%s:\ngot  %v\nwant %s", name, err, want)
			}
			ds.Close()
		}
	})
}

// overwrite writes the bytes of a file again, in place.
func overwrite(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(data); err != nil {
		t.Fatal(err)
	}
}

func setTime(t *testing.T, path string, at time.Time) {
	t.Helper()
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

// TestGrownAfterOpen: a file that has grown may have other content.
func TestGrownAfterOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, io := range []string{"map", "read"} {
			l := write(t, arrow.PrimitiveTypes.Int64, "[7,8,9]")
			ds, err := arrowio.OpenFiles(t.Context(), []string{l.path}, arrowio.Options{IO: io})
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(l.path, append(bytes.Clone(l.data), l.data...), 0o600); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			_, err = gatherField(ds, 0, ds.Schema().Fields[0], []int64{2, 0})
			if want := l.path + " has changed since it was opened: it has "; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %s", io, err, want)
			}
			ds.Close()
		}
	})
}

// TestReplacedAfterOpen: another file under the same name does not change the open
// file.
func TestReplacedAfterOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, io := range []string{"map", "read"} {
			l, other := write(t, arrow.PrimitiveTypes.Int64, "[7,8,9]"), write(t, arrow.PrimitiveTypes.Int64, "[1,2,3]")
			ds, err := arrowio.OpenFiles(t.Context(), []string{l.path}, arrowio.Options{IO: io})
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(other.path, l.path); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			got, err := gatherField(ds, 0, ds.Schema().Fields[0], []int64{2, 0})
			if want := []byte{9, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0}; err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: %v, %v", io, got, err)
			}
			ds.Close()
		}
	})
}
