package layout

import (
	"fmt"
	"os"
	"testing"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
)

// huge gives the most that a document may ask for: 1,024 arrays on 2^20
// devices, all partitioned alike or each in its own way.
func huge(processes int, alike bool) *Document {
	d := &Document{Mesh: MeshSpec{Processes: processes}, Batch: &BatchSpec{Size: []int{1 << 20}}}
	for a := range 20 {
		d.Mesh.Axes = append(d.Mesh.Axes, mesh.Axis{Name: string(rune('a' + a)), Size: 2})
	}
	for i := range MaxArrays {
		a := ArraySpec{Name: fmt.Sprint(i), Type: dtype.Int8, RowShape: []int{1024}, Spec: sharding.PartitionSpec{{"a", "b"}}}
		for bit := range 10 {
			if !alike && i>>bit&1 == 1 {
				a.Spec[0] = append(a.Spec[0], string(rune('c'+bit)))
			}
		}
		if alike {
			for x := 2; x < 20; x++ {
				a.Spec[0] = append(a.Spec[0], string(rune('a'+x)))
			}
		}
		d.Arrays = append(d.Arrays, a)
	}
	return d
}

// Numbers that are too large to count are one beyond the largest.
func TestPlus(t *testing.T) {
	const most = MaxInteger
	for _, c := range []struct{ sum, size, times, want int64 }{
		{1, 2, 3, 7}, {0, most, 1, most}, {most - 6, 2, 3, most}, {most, 0, 9, most},
		{most - 5, 2, 3, most + 1}, {0, most, 2, most + 1}, {most + 1, 1, 0, most + 1},
		{1, most, most, most + 1},                 // beyond 64 bits
		{1 << 30, 1<<32 + 1, 1<<32 - 1, most + 1}, // 2^64 - 1: beyond them with the sum
	} {
		if got := plus(c.sum, c.size, c.times); got != c.want {
			t.Errorf("%d + %d × %d = %d, want %d", c.sum, c.size, c.times, got, c.want)
		}
	}
}

// TestHuge holds that the largest documents neither take the memory nor the
// day, whatever is asked of their layouts.
func TestHuge(t *testing.T) {
	if os.Getenv("MESHFEED_DEEP") == "" {
		t.Skip("takes some seconds; MESHFEED_DEEP=1 runs it")
	}
	for _, c := range []struct {
		processes int
		alike     bool
		code      Code // of the first problem, if it is an error
	}{{1, true, TooManyBlocks}, {MaxProcesses, true, ""}, {1, false, TooLarge}} {
		l, err := New(huge(c.processes, c.alike))
		if err != nil {
			t.Fatal(err)
		}
		if (c.code == "") != (l.Err() == nil) || c.code != "" && l.Problems()[0].Code != c.code {
			t.Errorf("%d processes, alike %t: %v", c.processes, c.alike, l.Err())
		}
		if n := len(l.Process(0).Blocks); n > MaxBlocks {
			t.Errorf("a process has %d blocks", n)
		}
		if n := len(l.Report(ReportOptions{Tables: true})); n > 4<<30 {
			t.Errorf("the report has %d bytes", n)
		}
		if n := len(l.Text(PictureOptions{})) + len(l.SVG(PictureOptions{})); n > 1<<20 {
			t.Errorf("the pictures have %d bytes", n)
		}
	}
}
