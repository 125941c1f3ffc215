package collective

import "github.com/meshfeed/meshfeed/core/status"

// MaxTraced is the largest group with traced values.
const MaxTraced = 64

// Value is the content of a slot of a device. An empty slot is not Present, and its
// Number is 0.
type Value struct {
	Number  int64
	Present bool
}

// State has the values of all devices: State[device][slot].
type State [][]Value

// Start returns the state before an operation. All numbers of device d are d+1, so a
// traced value shows its source. Slots without input are empty.
func Start(op Op, alg Algorithm, n int) (State, error) {
	if err := checkTraced(op, alg, n); err != nil {
		return nil, err
	}
	s := make(State, n)
	for d := range s {
		s[d] = make([]Value, Slots(op, alg, n))
		for i := range s[d] {
			s[d][i] = Value{Number: int64(d + 1), Present: begins(op, d, i*n/len(s[d]))}
			if !s[d][i].Present {
				s[d][i] = Value{}
			}
		}
	}
	return s, nil
}

// begins reports whether a device has a chunk before the operation.
func begins(op Op, device, chunk int) bool {
	switch op {
	case AllGather:
		return device == chunk
	case Broadcast:
		return device == 0
	}
	return true
}

// Trace runs the steps of an operation on values, and returns the states after
// every step. The same slots of start must be empty as in the result of [Start].
func Trace(op Op, alg Algorithm, start State) ([]State, error) {
	if err := checkTraced(op, alg, len(start)); err != nil {
		return nil, err
	}
	n := len(start)
	if err := checkState(start, Slots(op, alg, n)); err != nil {
		return nil, err
	}
	var states []State
	state := start
	for _, step := range steps(op, alg, n) {
		from := state
		if op == AllToAll {
			from = start // a device sends its input, and not values that it received
		}
		state = after(state, from, step)
		states = append(states, state)
	}
	return states, nil
}

// after returns the state after a step that sends values of from.
func after(state, from State, step Step) State {
	next := make(State, len(state))
	for d := range next {
		next[d] = append([]Value(nil), state[d]...)
	}
	for _, t := range step {
		value := from[t.From][t.Chunk]
		if t.Reduce {
			value.Number += next[t.To][t.Slot].Number
		}
		next[t.To][t.Slot] = value
	}
	return next
}

func checkTraced(op Op, alg Algorithm, n int) error {
	if err := check(op, alg, n); err != nil {
		return err
	}
	if n > MaxTraced {
		return status.Errorf(status.ResourceExhausted, "collective", "the values of %d devices are too many to trace: at most %d devices", n, MaxTraced).
			WithHint("use a smaller group; NewCost has bytes and time for up to 2^20 devices")
	}
	return nil
}

func checkState(s State, slots int) error {
	for d, values := range s {
		if len(values) != slots {
			return fail("device %d has %d slots, but the algorithm needs %d", d, len(values), slots).WithHint("Start makes a state")
		}
	}
	return nil
}
