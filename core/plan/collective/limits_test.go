package collective_test

import (
	"testing"

	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/plan/collective"
	"github.com/meshfeed/meshfeed/core/plan/hardware"
	"github.com/meshfeed/meshfeed/core/status"
)

func TestErrors(t *testing.T) {
	m, err := mesh.Uniform([]mesh.Axis{{Name: "data", Size: 4}, {Name: "model", Size: 2}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	const ring, reduce = collective.Ring, collective.AllReduce
	link := hardware.Link{BytesPerSecond: 1}
	for _, c := range []struct {
		call func() error
		code status.Code
		want string
	}{
		{
			func() error { _, err := collective.Steps("reduce", ring, 4); return err }, status.InvalidArgument,
			`collective: there is no operation "reduce"; use one of "all-gather", "reduce-scatter", "all-reduce", "all-to-all", "permute", "broadcast"`,
		},
		{
			func() error {
				_, err := collective.NewCost(collective.AllGather, collective.Tree, 4, 1, link)
				return err
			}, status.InvalidArgument,
			`collective: all-gather has no algorithm "tree"; use one of "ring", "bidirectional"`,
		},
		{
			func() error { _, err := collective.NewCost(reduce, ring, 0, 1, link); return err }, status.InvalidArgument,
			`collective: a group has 0 devices, but must have 1 to 1048576`,
		},
		{
			func() error { _, err := collective.NewCost(reduce, ring, 1<<20+1, 1, link); return err }, status.InvalidArgument,
			`collective: a group has 1048577 devices, but must have 1 to 1048576`,
		},
		{
			func() error { _, err := collective.NewCost(reduce, ring, 4, -1, link); return err }, status.InvalidArgument,
			`collective: an array has -1 bytes, but must have 0 to 2^53`,
		},
		{
			func() error { _, err := collective.Steps(reduce, ring, 513); return err }, status.ResourceExhausted,
			`collective: the steps of 513 devices are too many to list: at most 512 devices; use a smaller group; NewCost has bytes and time for up to 2^20 devices`,
		},
		{
			func() error { _, err := collective.Start(reduce, ring, 65); return err }, status.ResourceExhausted,
			`collective: the values of 65 devices are too many to trace: at most 64 devices; use a smaller group; NewCost has bytes and time for up to 2^20 devices`,
		},
		{
			func() error { _, err := collective.Trace(reduce, ring, make(collective.State, 65)); return err }, status.ResourceExhausted,
			`collective: the values of 65 devices are too many to trace: at most 64 devices; use a smaller group; NewCost has bytes and time for up to 2^20 devices`,
		},
		{
			func() error {
				_, err := collective.Trace(reduce, ring, collective.State{{{Number: 1}}, nil})
				return err
			}, status.InvalidArgument,
			`collective: device 0 has 1 slots, but the algorithm needs 2; Start makes a state`,
		},
		{
			func() error { _, err := collective.Groups(m, []string{"tensor"}); return err }, status.InvalidArgument,
			`collective: the mesh has no axis "tensor"; it is Mesh('data': 4, 'model': 2)`,
		},
		{
			func() error { _, err := collective.Groups(m, []string{"data", "data"}); return err }, status.InvalidArgument,
			`collective: axis "data" is named twice; name every axis once`,
		},
	} {
		if err := c.call(); err == nil || err.Error() != c.want || status.CodeOf(err) != c.code {
			t.Errorf("got  %v (%v)\nwant %s (%v)", err, status.CodeOf(err), c.want, c.code)
		}
	}
}

// The costs of the largest groups do not overflow.
func TestLargestGroups(t *testing.T) {
	for _, op := range collective.Ops() {
		for _, alg := range collective.Algorithms(op) {
			if _, err := collective.Steps(op, alg, collective.MaxStepped); err != nil {
				t.Errorf("%s %s: %v", op, alg, err)
			}
			for _, link := range []hardware.Link{{}, {BytesPerSecond: 1, LatencyNs: 1_000_000_000}, {BytesPerSecond: 1 << 53}} {
				c, err := collective.NewCost(op, alg, 1<<20, collective.MaxBytes, link)
				if err != nil || c.Sent < collective.MaxBytes-collective.MaxBytes>>20 || c.Steps < 1 || c.Ns != collective.Unknown && c.Ns < 9e8 {
					t.Errorf("%s %s over %+v: %+v, %v", op, alg, link, c, err)
				}
			}
		}
	}
}
