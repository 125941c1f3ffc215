package arrowio_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/blob/blobtest"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/tests/far"
)

// gatherUnits gathers a row of each of the first units, as the first batch of their window does.
func gatherUnits(b *testing.B, ds *arrowio.Dataset, units, rows int) {
	b.Helper()
	schema := ds.Schema()
	g, err := ds.Gatherer([]source.Part{schema.Whole(0), schema.Whole(1), schema.Whole(2)})
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close()
	records, all := make([]int64, units), [2]int{0, units}
	for i := range records {
		records[i] = int64(i * rows)
	}
	jobs := []source.Job{{Part: 0, Rows: all, Dst: make([]byte, 8*units)}, {Part: 1, Rows: all, Dst: make([]byte, 4*units)}, {Part: 2, Rows: all, Dst: make([]byte, 4*units)}}
	if err := g.Gather(context.Background(), source.Draw{}, records, jobs); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkFar reads 128 row groups of 3.2 MB from a server with 30 ms and 50 MB/s per connection: the first window of 8,
// then all, and all with answers that stop for 2 s. "disk" decodes the same files of this machine into such a cache.
func BenchmarkFar(b *testing.B) {
	const files, groups, rows = 32, 4, 200_000
	s, near := &far.Server{Files: map[string][]byte{}, Latency: 30 * time.Millisecond, Rate: 50e6, Faults: []far.Fault{far.Pause}}, blobtest.Memory{}
	data := parquetGroups(groups, rows, 1, 0)
	for i := range files {
		s.Files[fmt.Sprintf("/%02d.parquet", i)], near[fmt.Sprintf("%02d.parquet", i)] = data, data
	}
	server := httptest.NewServer(s)
	defer server.Close()
	for _, c := range []struct {
		name  string
		units int
		share float64
		local bool
	}{{"disk", files * groups, 0, true}, {"window", 8, 0, false}, {"all", files * groups, 0, false}, {"pauses of 1 %", files * groups, 0.01, false}, {"pauses of 3 %", files * groups, 0.03, false}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				pattern, o := server.URL+"/{00..31}.parquet", arrowio.Options{Cache: b.TempDir(), Duplicates: "allow"}
				if c.local {
					pattern, o.Opener = "*.parquet", &blobtest.Far{Opener: near, Suits: blob.Far}
				}
				s.Share = 0
				ds, err := arrowio.OpenFiles(context.Background(), []string{pattern}, o)
				if err != nil {
					b.Fatal(err)
				}
				s.Share = c.share
				s.Seed++
				b.StartTimer()
				began := time.Now()
				gatherUnits(b, ds, c.units, rows)
				took := time.Since(began).Seconds()
				b.StopTimer()
				bytes := float64(c.units * rows * 16)
				b.ReportMetric(bytes/1e6/took, "MB/s")
				if c.name == "window" {
					b.ReportMetric(took/(0.03+bytes/(min(16, float64(c.units*rows*16)/(8<<20))*50e6)), "times-link")
				}
				_ = ds.Close()
				b.StartTimer()
			}
		})
	}
}
