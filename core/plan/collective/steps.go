package collective

import (
	"slices"

	"github.com/meshfeed/meshfeed/core/status"
)

// MaxStepped is the largest group with a list of steps.
const MaxStepped = 512

// Transfer is a message: device From sends what it has in slot Chunk, and
// device To stores it in slot Slot, or adds it to that slot.
type Transfer struct {
	From, To    int
	Chunk, Slot int
	Reduce      bool
}

// Step has the messages that are sent at the same time.
type Step []Transfer

// Slots returns the number of parts that an algorithm cuts the array into: one
// per device, two with [Bidirectional], and one altogether if the whole array is
// sent at once. Part i has bytes bytes·(i+1)/slots - bytes·i/slots, rounded down.
func Slots(op Op, alg Algorithm, n int) int {
	switch {
	case alg == Bidirectional:
		return 2 * n
	case alg == Tree || op == Permute:
		return 1
	}
	return n
}

// Steps lists the messages of an operation in a group of n devices. The error is
// InvalidArgument for an unknown operation or algorithm, and ResourceExhausted
// for a group of more than MaxStepped devices.
func Steps(op Op, alg Algorithm, n int) ([]Step, error) {
	if err := check(op, alg, n); err != nil {
		return nil, err
	}
	if n > MaxStepped {
		return nil, status.Errorf(status.ResourceExhausted, "collective", "the steps of %d devices are too many to list: at most %d devices", n, MaxStepped).
			WithHint("use a smaller group; NewCost has bytes and time for up to 2^20 devices")
	}
	return steps(op, alg, n), nil
}

func steps(op Op, alg Algorithm, n int) []Step {
	switch op {
	case AllGather:
		return gather(alg, n, 1)
	case ReduceScatter:
		return reversed(gather(alg, n, -1))
	case AllReduce:
		if alg == Tree {
			return append(reversed(tree(n)), tree(n)...)
		}
		return append(reversed(gather(alg, n, -1)), gather(alg, n, 1)...)
	case AllToAll:
		return exchange(n)
	case Permute:
		return shift(n)
	}
	if alg == Tree {
		return tree(n)
	}
	return chain(n)
}

// gather passes the chunk of every device to all others.
func gather(alg Algorithm, n, direction int) []Step {
	if alg == Bidirectional {
		return bothWays(n)
	}
	list := make([]Step, n-1)
	for k := range list {
		for d := range n {
			list[k] = append(list[k], send(d, mod(d+direction, n), mod(d-direction*k, n)))
		}
	}
	return list
}

// bothWays passes both halves of a chunk to both neighbors. In an even group the
// device opposite gets one half from each side.
func bothWays(n int) []Step {
	list := make([]Step, n/2)
	for k := range list {
		opposite := 2*(k+1) == n
		for d := range n {
			up, down := mod(d-k, n), mod(d+k, n)
			list[k] = append(list[k], send(d, mod(d+1, n), 2*up))
			if !opposite {
				list[k] = append(list[k], send(d, mod(d+1, n), 2*up+1), send(d, mod(d-1, n), 2*down))
			}
			list[k] = append(list[k], send(d, mod(d-1, n), 2*down+1))
		}
	}
	return list
}

// tree sends the array of device 0 to all others. At every step, each device that has
// the array sends it to a device without it.
func tree(n int) []Step {
	var list []Step
	for have := 1; have < n; have *= 2 {
		var step Step
		for d := range min(have, n-have) {
			step = append(step, send(d, d+have, 0))
		}
		list = append(list, step)
	}
	return list
}

// chain passes the chunks of device 0 from each device to the next.
func chain(n int) []Step {
	if n == 1 {
		return nil
	}
	list := make([]Step, 2*n-2)
	for k := range list {
		for d := range n - 1 {
			if chunk := k - d; chunk >= 0 && chunk < n {
				list[k] = append(list[k], send(d, d+1, chunk))
			}
		}
	}
	return list
}

// exchange sends chunk j of device i to slot i of device j.
func exchange(n int) []Step {
	list := make([]Step, n-1)
	for k := range list {
		for d := range n {
			to := mod(d+k+1, n)
			list[k] = append(list[k], Transfer{From: d, To: to, Chunk: to, Slot: d})
		}
	}
	return list
}

func shift(n int) []Step {
	if n == 1 {
		return nil
	}
	var step Step
	for d := range n {
		step = append(step, send(d, mod(d+1, n), 0))
	}
	return []Step{step}
}

// reversed turns the steps of an all-gather into a reduce-scatter: it reverses their order
// and every message, and receivers add what they receive.
func reversed(list []Step) []Step {
	back := make([]Step, len(list))
	for i, step := range list {
		to := slices.Clone(step)
		for j, t := range to {
			to[j] = Transfer{From: t.To, To: t.From, Chunk: t.Slot, Slot: t.Chunk, Reduce: true}
		}
		back[len(list)-1-i] = to
	}
	return back
}

func send(from, to, chunk int) Transfer {
	return Transfer{From: from, To: to, Chunk: chunk, Slot: chunk}
}

func mod(a, n int) int { return ((a % n) + n) % n }
