package arrowio_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/status"
)

// TestDamagedViews changes one view of a valid column. Reading its row is an error that
// names the record; the other rows are read as before.
func TestDamagedViews(t *testing.T) {
	for _, c := range []struct {
		offset int // in the views; the second begins at 16
		value  int32
		want   string
	}{
		{16, -5, "its view has -5 bytes"},
		{16, 29, "its view is of 29 bytes from byte 0 on in a data buffer of 28"},
		{28, 1, "its view is of 28 bytes from byte 1 on in a data buffer of 28"},
		{28, -1, "its view is of 28 bytes from byte -1 on in a data buffer of 28"},
		{24, 1, "its view is of data buffer 1 of 1"},
		{24, -1, "its view is of data buffer -1 of 1"},
	} {
		for _, typ := range []arrow.DataType{arrow.BinaryTypes.StringView, arrow.ListOf(arrow.BinaryTypes.StringView)} {
			values, damaged := `["short","a text of more than 12 bytes","none"]`, int64(1)
			if typ.ID() == arrow.LIST {
				values, damaged = fmt.Sprintf("[[],%s,[]]", values), 1
			}
			l := write(t, typ, values)
			if typ.ID() == arrow.LIST {
				l.putChild(c.offset, c.value)
			} else {
				l.put(1, c.offset, c.value)
			}
			for _, io := range []string{"map", "read"} {
				ds, err := arrowio.OpenFiles(t.Context(), []string{l.path}, arrowio.Options{IO: io})
				if err != nil {
					t.Fatal(err)
				}
				for record := range int64(3) {
					_, err := readRagged(ds, 0, []int64{record})
					if record != damaged && err != nil {
						t.Errorf("record %d: %v", record, err)
					}
					want := fmt.Sprintf(`field "x": record %d: %s; the data are damaged; write them again`, damaged, c.want)
					if record == damaged && (status.CodeOf(err) != status.DataLoss || !strings.HasSuffix(err.Error(), want)) {
						t.Errorf("%v: got  %v\nwant %s", typ, err, want)
					}
				}
				ds.Close()
			}
		}
	}
}
