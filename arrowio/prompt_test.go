package arrowio

import (
	"runtime"
	"testing"
	"time"

	"github.com/meshfeed/meshfeed/arrowio/internal/table"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// Gathers are prompt when a mapped file is in memory, to stay, and never where
// it is read; those of a slice are what those of the whole are.
func TestPrompt(t *testing.T) {
	for io, want := range map[string]bool{"map": true, "read": false} {
		d, err := OpenFiles([]string{golden}, Options{IO: io})
		if status.CodeOf(err) == status.Unsupported {
			t.Skip("only Linux 5.14 or later keeps a mapped file in memory")
		}
		if err != nil {
			t.Fatal(err)
		}
		half, err := source.Slice(d, 0, d.Len()/2)
		if err != nil {
			t.Fatal(err)
		}
		var all []source.Prompt
		for _, src := range []source.Source{d, half} {
			g, err := src.Gatherer([]source.Part{table.WholeRow(0, d.Schema().Fields[0])})
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			all = append(all, g.(source.Prompt))
		}
		for late := time.Now().Add(time.Minute); want && !all[0].Prompt(); runtime.Gosched() {
			if time.Now().After(late) {
				t.Fatal("a mapped file is not in memory after a minute")
			}
		}
		for i, g := range all {
			if got := g.Prompt(); got != want {
				t.Errorf("io %q, gatherer %d: prompt is %v, want %v", io, i, got, want)
			}
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		for i, g := range all {
			if g.Prompt() {
				t.Errorf("io %q, gatherer %d: prompt, but the dataset is closed", io, i)
			}
		}
	}
}
