package strategy_test

import (
	"testing"

	"github.com/meshfeed/meshfeed/core/plan/strategy"
)

// advise returns the report of a document without an error.
func advise(t *testing.T, d *strategy.Document) *strategy.Report {
	t.Helper()
	r, err := strategy.Advise(d)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// fixed returns a search for one mesh. Axes that are not named have size 1.
func fixed(mesh map[string]int) strategy.Search {
	var s strategy.Search
	for _, a := range strategy.Axes() {
		s.Axes = append(s.Axes, strategy.AxisSizes{Axis: a, Sizes: []int{max(1, mesh[a])}})
	}
	return s
}

// devices returns a cluster with simple numbers: 100 GB of memory, 10^14 operations per
// second, 10^12 bytes per second of memory, 10^11 in a node, 10^10 between nodes, and
// no latencies.
func devices(n, perNode int) strategy.Cluster {
	return strategy.Cluster{
		Devices: n, PerNode: perNode, MemoryBytes: 100_000_000_000, FLOPsPerSecond: 100_000_000_000_000, HBMBytesPerSecond: 1_000_000_000_000,
		NodeBytesPerSecond: 100_000_000_000, NetworkBytesPerSecond: 10_000_000_000, NodeLatencyNs: new(int64(0)), NetworkLatencyNs: new(int64(0)),
	}
}

// small returns a transformer with few layers, and round numbers.
func small() *strategy.Transformer {
	return &strategy.Transformer{Layers: 4, Hidden: 1024, Heads: 16, FFN: 4096, Vocab: 32768, Sequence: 2048, Gated: new(true), KVHeads: 4}
}

// sheet is the efficiency of links that reach the bandwidth of their data sheets.
var sheet = [2]int{1000, 1000}
