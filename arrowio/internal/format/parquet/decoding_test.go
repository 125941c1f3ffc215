package parquet

import (
	"errors"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/arrowio/internal/local"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// TestEstimateGrows: after a decoding that needed more than its estimate, the next one of this
// column may take all memory, and decodings of other columns may not.
func TestEstimateGrows(t *testing.T) {
	b, err := local.Opener{}.Open(t.Context(), blob.Entry{Name: "../../../testdata/parquet/ragged.parquet"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	opened, err := Format{UsualRules}.Open(t.Context(), resident.NewFile(b, nil))
	if err != nil {
		t.Fatal(err)
	}
	c := opened.(*file)
	fields, _ := arrowtype.Describe(&c.meta.Schema)
	part, err := c.part(t.Context(), &c.units[0], c.leaf(0))
	if err != nil {
		t.Fatal(err)
	}
	small := decoding{part: part, at: place{0, 0}, field: fields[0], limit: 1}
	if _, err := small.run(t.Context(), false); !errors.Is(err, format.ErrEstimate) {
		t.Fatalf("got %v", err)
	}
	for column, all := range []bool{true, false} {
		d, err := c.Decoding(t.Context(), 0, column, fields[column])
		if err != nil || (d.Memory == format.MaxColumn) != all {
			t.Errorf("column %d: %d bytes, %v", column, d.Memory, err)
		}
		if _, err := d.Run(t.Context(), false); err != nil {
			t.Errorf("column %d: %v", column, err)
		}
	}
}
