package memory

import (
	"slices"

	"github.com/meshfeed/meshfeed/core/plan/internal/amount"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// Optimizer is an optimizer with known states. The zero value has none.
type Optimizer uint8

// The optimizers. Their states are as in optax, which follows the papers.
const (
	NoOptimizer Optimizer = iota
	AdamW                 // two moments
	Adafactor             // sums of rows and of columns of the second moment [Shazeer and Stern, arXiv 1804.04235]
	Lion                  // one moment [Chen et al., arXiv 2302.06675]
	SGD                   // no state
	Momentum              // SGD with one moment
	Muon                  // one moment for matrices, AdamW for other arrays
)

// optimizers lists the optimizers with their states.
var optimizers = [...]struct {
	name    string
	moments []string // arrays of the shape of the parameter
	scalars []State  // one of each for the whole tree
}{
	NoOptimizer: {"", nil, nil},
	AdamW:       {"adamw", []string{"mu", "nu"}, []State{count}},
	Adafactor:   {"adafactor", []string{"v"}, []State{count}},
	Lion:        {"lion", []string{"mu"}, []State{count}},
	SGD:         {"sgd", nil, nil},
	Momentum:    {"momentum", []string{"trace"}, nil},
	Muon:        {"muon", []string{"mu", "nu"}, []State{count, {Name: "adam/count", Element: Int32}, {Name: "ns_coeffs", Shape: []int{3}, Element: Float32}}},
}

var count = State{Name: "count", Element: Int32}

// minFactored is the least size of the two largest dimensions with which adafactor keeps sums
// instead of the whole second moment, as in optax and in T5X.
const minFactored = 128

// Optimizers lists the optimizers that have a name.
func Optimizers() []Optimizer { return []Optimizer{AdamW, Adafactor, Lion, SGD, Momentum, Muon} }

// ParseOptimizer finds an optimizer by its name, such as "adamw".
func ParseOptimizer(name string) (Optimizer, error) {
	var names []string
	for _, o := range Optimizers() {
		if o.String() == name {
			return o, nil
		}
		names = append(names, o.String())
	}
	return NoOptimizer, status.Errorf(status.InvalidArgument, "memory", "%s is not an optimizer with known states", wording.Quote(name)).
		WithHint("%s", wording.Suggest(name, names))
}

// String returns the name, such as "adamw".
func (o Optimizer) String() string { return optimizers[o].name }

// State is an array that an optimizer keeps.
type State struct {
	Name    string
	Shape   []int
	Dims    []int   // for each dimension, the dimension of the parameter that it follows, or -1
	Element Element // Invalid for the type of the moments
}

// States lists the states for one parameter. A state follows the partition spec of
// its parameter, by Dims.
//
// Like optax, Muon treats every matrix as the weights of a hidden layer. If another
// optimizer updates the embedding and the logits, ask it for their states.
func (o Optimizer) States(shape []int) []State {
	var states []State
	keep := func(name string, dims []int) {
		s := State{Name: name, Shape: make([]int, len(dims)), Dims: dims}
		for i, d := range dims {
			s.Shape[i] = 1
			if d >= 0 {
				s.Shape[i] = shape[d]
			}
		}
		states = append(states, s)
	}
	all := make([]int, len(shape))
	for d := range all {
		all[d] = d
	}
	names := optimizers[o].moments
	switch {
	case o == Adafactor:
		// Optax keeps an array with one element for each unused kind of state.
		rows, columns, ok := factored(shape)
		if !ok {
			keep("v_row", []int{-1})
			keep("v_col", []int{-1})
			keep("v", all)
			break
		}
		keep("v_row", slices.Delete(slices.Clone(all), columns, columns+1))
		keep("v_col", slices.Delete(all, rows, rows+1))
		keep("v", []int{-1})
	case o == Muon && len(shape) == 2:
		names = names[:1]
		fallthrough
	default:
		for _, name := range names {
			keep(name, slices.Clone(all))
		}
	}
	return states
}

// Scalars lists the states that exist once for the whole tree.
func (o Optimizer) Scalars() []State { return slices.Clone(optimizers[o].scalars) }

// Elements returns the number of elements of States. It allocates nothing.
func (o Optimizer) Elements(shape []int) int64 {
	n := amount.Product(shape...)
	switch {
	case o == Adafactor:
		if rows, columns, ok := factored(shape); ok {
			return amount.Sum(n/int64(shape[columns]), n/int64(shape[rows]), 1)
		}
		return amount.Sum(n, 2)
	case o == Muon && len(shape) == 2:
		return n
	}
	return amount.Product(n, int64(len(optimizers[o].moments)))
}

// factored returns the two largest dimensions of a shape, the second largest first. If the
// second largest is below minFactored, ok is false. If dimensions are equal, the later one
// counts as larger.
func factored(shape []int) (rows, columns int, ok bool) {
	if len(shape) < 2 {
		return 0, 0, false
	}
	rows, columns = -1, -1
	for d, n := range shape {
		switch {
		case columns < 0 || n >= shape[columns]:
			rows, columns = columns, d
		case rows < 0 || n >= shape[rows]:
			rows = d
		}
	}
	return rows, columns, shape[rows] >= minFactored
}
