package arrowio

import "testing"

// TestSize compares what metadata say of the decoded bytes of ragged fields with them.
func TestSize(t *testing.T) {
	for _, path := range []string{"testdata/parquet/ragged.parquet", "testdata/parquet/ragged_plain.parquet", "../internal/arrowmeta/testdata/lz4.arrow"} {
		d, err := OpenFiles(t.Context(), []string{path}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range d.files.Fields {
			likely, real := int64(0), int64(0)
			for unit := range d.files.Batches() {
				n, err := d.files.List[0].Size(t.Context(), unit, field)
				if err != nil {
					t.Fatal(err)
				}
				decoded, err := d.decoded.Once(t.Context(), int32(unit), field, false)
				if err != nil {
					t.Fatal(err)
				}
				likely, real = likely+n, real+decoded.Bytes
			}
			if nulls := field.Name == "null deep"; field.Ragged > 0 && !nulls && (likely < real/2-64 || likely > 2*real+64) {
				t.Errorf("%s: field %q has %d bytes decoded, and likely %d", path, field.Name, real, likely)
			}
		}
		_ = d.Close()
	}
}
