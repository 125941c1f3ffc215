package convert

import (
	"encoding/csv"
	"slices"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio/internal/manifest"
	"github.com/meshfeed/meshfeed/core/source"
)

// TestOtherColumns: the hint is words of a shell, and --columns reads the names from them.
func TestOtherColumns(t *testing.T) {
	names := []string{"a", "b,c", `d"e`, "it's", "x y"}
	var s source.Schema
	for _, name := range names {
		s.Fields = append(s.Fields, source.Field{Name: name})
	}
	want := `convert: the column "p" (struct) cannot be converted: why; convert the other columns: --columns 'a,"b,c","d""e",it'\''s,x y'`
	if err := refuse(s, source.Skipped{Name: "p", Type: "struct", Reason: "why"}); err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if read, err := csv.NewReader(strings.NewReader(joined(names))).Read(); err != nil || !slices.Equal(read, names) {
		t.Errorf("%q, %v", read, err) // pflag reads a value in this way
	}
	if got := manifest.Quote(joined(names[:1])); got != "a" {
		t.Errorf("got %s", got)
	}
}
