package collective_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/plan/collective"
	"github.com/meshfeed/meshfeed/core/plan/hardware"
	"github.com/meshfeed/meshfeed/tests/random"
)

// each runs a test for all operations, algorithms and groups of 1 to 17 devices.
func each(t *testing.T, test func(t *testing.T, op collective.Op, alg collective.Algorithm, n int)) {
	for _, op := range collective.Ops() {
		for _, alg := range collective.Algorithms(op) {
			t.Run(fmt.Sprintf("%s/%s", op, alg), func(t *testing.T) {
				for n := 1; n <= 17; n++ {
					test(t, op, alg, n)
				}
			})
		}
	}
}

// filled returns a start state with random numbers.
func filled(t *testing.T, r *rand.Rand, op collective.Op, alg collective.Algorithm, n int) collective.State {
	t.Helper()
	s, err := collective.Start(op, alg, n)
	if err != nil {
		t.Fatal(err)
	}
	for _, values := range s {
		for i := range values {
			if values[i].Present {
				values[i].Number = r.Int64N(1_000_000)
			}
		}
	}
	return s
}

// defined returns the state that an operation must reach, by its definition. For a
// reduce-scatter, all slots outside of a device's own chunk are empty in the result.
func defined(op collective.Op, start collective.State) collective.State {
	n := len(start)
	result := make(collective.State, n)
	for d := range result {
		slots := len(start[d])
		result[d] = make([]collective.Value, slots)
		for i := range result[d] {
			chunk := i * n / slots
			switch op {
			case collective.AllGather:
				result[d][i] = start[chunk][i]
			case collective.ReduceScatter:
				if chunk == d {
					result[d][i] = sum(start, i)
				}
			case collective.AllReduce:
				result[d][i] = sum(start, i)
			case collective.AllToAll:
				result[d][i] = start[i][d]
			case collective.Permute:
				result[d][i] = start[(d+n-1)%n][i]
			case collective.Broadcast:
				result[d][i] = start[0][i]
			}
		}
	}
	return result
}

func sum(start collective.State, slot int) collective.Value {
	total := collective.Value{Present: true}
	for _, values := range start {
		total.Number += values[slot].Number
	}
	return total
}

func TestResultsAreAsDefined(t *testing.T) {
	r := random.New(t)
	each(t, func(t *testing.T, op collective.Op, alg collective.Algorithm, n int) {
		start := filled(t, r, op, alg, n)
		states, err := collective.Trace(op, alg, start)
		if err != nil {
			t.Fatal(err)
		}
		end := start
		if len(states) > 0 {
			end = states[len(states)-1]
		}
		want := defined(op, start)
		for d := range want {
			for i, v := range want[d] {
				if op == collective.ReduceScatter && !v.Present {
					continue // what is left in the other chunks is partial
				}
				if end[d][i] != v {
					t.Fatalf("%d devices: device %d has %v in slot %d, want %v", n, d, end[d][i], i, v)
				}
			}
		}
	})
}

// No message has a value that is missing, none goes to its sender, and in a ring
// all go to the next device.
func TestMessagesHaveValues(t *testing.T) {
	each(t, func(t *testing.T, op collective.Op, alg collective.Algorithm, n int) {
		state, err := collective.Start(op, alg, n)
		if err != nil {
			t.Fatal(err)
		}
		states, err := collective.Trace(op, alg, state)
		if err != nil {
			t.Fatal(err)
		}
		list, err := collective.Steps(op, alg, n)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) != len(states) {
			t.Fatalf("%d devices: %d steps, but %d states", n, len(list), len(states))
		}
		for i, step := range list {
			for _, m := range step {
				if !state[m.From][m.Chunk].Present || m.From == m.To || alg == collective.Ring && m.To != (m.From+1)%n {
					t.Fatalf("%d devices, step %d: message %+v", n, i, m)
				}
			}
			state = states[i]
		}
	})
}

// The closed forms agree with the messages: steps, bytes that the busiest
// device sends, and time.
func TestCostsAgreeWithSteps(t *testing.T) {
	r := random.New(t)
	link := hardware.Link{BytesPerSecond: 1e9, LatencyNs: 10}
	each(t, func(t *testing.T, op collective.Op, alg collective.Algorithm, n int) {
		slots := int64(collective.Slots(op, alg, n))
		for _, bytes := range []int64{r.Int64N(10_000), slots * r.Int64N(1000)} {
			steps, most, ns := measured(t, op, alg, n, bytes, link)
			c, err := collective.NewCost(op, alg, n, bytes, link)
			if err != nil {
				t.Fatal(err)
			}
			if alg == collective.Bidirectional && bytes%slots != 0 && c.Sent-most >= -2 && c.Sent-most <= 2 {
				most = c.Sent // a device sends halves of different chunks
			}
			if c.Steps != steps || c.Sent != most {
				t.Errorf("%d devices, %d bytes: got %d steps and %d bytes, want %d and %d", n, bytes, c.Steps, c.Sent, steps, most)
			}
			if bytes%slots == 0 && c.Ns != ns {
				t.Errorf("%d devices, %d bytes: got %d ns, want %d", n, bytes, c.Ns, ns)
			}
		}
	})
}

// measured returns the steps of an operation, the bytes of the busiest device,
// and the time if every step takes as long as the busiest device of that step.
func measured(t *testing.T, op collective.Op, alg collective.Algorithm, n int, bytes int64, link hardware.Link) (steps int, most, ns int64) {
	t.Helper()
	list, err := collective.Steps(op, alg, n)
	if err != nil {
		t.Fatal(err)
	}
	slots := int64(collective.Slots(op, alg, n))
	sent := make([]int64, n)
	for _, step := range list {
		now := make([]int64, n)
		for _, m := range step {
			now[m.From] += bytes*int64(m.Chunk+1)/slots - bytes*int64(m.Chunk)/slots
		}
		for d, b := range now {
			sent[d] += b
		}
		ns += link.LatencyNs + slices.Max(now)*1e9/link.BytesPerSecond
	}
	return len(list), slices.Max(sent), ns
}
