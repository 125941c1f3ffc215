package memory

import (
	"math"
	"slices"

	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/plan/internal/amount"
	"github.com/meshfeed/meshfeed/core/problem"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/internal/jsontext"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// Measure computes the sizes of a tree. If a spec does not fit its array, Measure adds a
// problem and omits the array from the sums.
func Measure(t *Tree) *Usage {
	u := &Usage{Tree: t}
	u.Parameters = u.rows("/arrays/", t.Parameters)
	u.States = u.rows("/optimizer/", t.States)
	u.Batch = u.rows("/batch/", t.Batch)
	if t.trained() {
		u.addTraining()
	}
	u.sum()
	u.check()
	return u
}

// addTraining adds the gradients and the states that follow from the parameters.
func (u *Usage) addTraining() {
	for i := range u.Parameters {
		r := &u.Parameters[i]
		if r.Part == nil {
			continue
		}
		r.Gradient = u.Tree.gradient(r)
		states := u.rows("", u.Tree.statesOf(r.Array))
		r.States = total(states)
		u.States = append(u.States, states...)
	}
	for _, s := range u.Tree.Optimizer.Scalars() {
		u.States = append(u.States, u.rows("", []Array{s.array(Array{})})...)
	}
}

// rows measures arrays. path is the JSON Pointer of their list, for problems.
func (u *Usage) rows(path string, arrays []Array) []Row {
	rows := make([]Row, len(arrays))
	for i, a := range arrays {
		r := Row{Array: a, Global: a.Element.Bytes(amount.Product(a.Shape...)), Copies: 1}
		if a.Shard != nil {
			r.shard(u.Tree.Mesh)
		} else {
			for _, f := range r.partition(u.Tree.Mesh) {
				u.addFault(path+jsontext.Escape(a.Name), f)
			}
		}
		rows[i] = r
	}
	return rows
}

// partition fills the row of an array with a spec, or returns why the spec does not
// fit.
func (r *Row) partition(m *mesh.Mesh) []sharding.Fault {
	_, tiling, faults := sharding.Fit(m, r.Spec, r.Shape, "array "+wording.Quote(r.Name))
	if len(faults) > 0 {
		return faults
	}
	r.Part = append([]int{}, r.Shape...) // not nil for a scalar
	for d, tiles := range tiling.Tiles() {
		r.Part[d] /= tiles
	}
	r.Bytes = r.Element.Bytes(amount.Product(r.Part...))
	r.Copies = int64(m.Size() / tiling.Count())
	for n, weight := range tiling.Weights() {
		if axis := m.Axes()[n]; weight == 0 && axis.Size > 1 {
			r.Replicated = append(r.Replicated, axis.Name)
		}
	}
	return nil
}

// shard fills the row of an array that has the shape of a part instead of a spec.
func (r *Row) shard(m *mesh.Mesh) {
	r.Part = r.Shard
	r.Bytes = r.Element.Bytes(amount.Product(r.Part...))
	if whole := amount.Product(r.Shape...); whole > 0 {
		r.Copies = max(1, int64(m.Size())/(whole/max(1, amount.Product(r.Part...))))
	}
}

// total returns the bytes of rows on a device, without rows on the host.
func total(rows []Row) (sum int64) {
	for _, r := range rows {
		if r.Host == "" {
			sum = amount.Sum(sum, r.Bytes)
		}
	}
	return sum
}

// sum sets the totals.
func (u *Usage) sum() {
	t := &u.Totals
	t.Parameters, t.States, t.Batch = total(u.Parameters), total(u.States), total(u.Batch)
	t.Stored = amount.Sum(t.Parameters, t.States, t.Batch)
	for _, r := range u.Parameters {
		t.Gradients = amount.Sum(t.Gradients, r.Gradient)
		t.Count = amount.Sum(t.Count, amount.Product(r.Shape...))
	}
	for _, r := range slices.Concat(u.Parameters, u.States, u.Batch) {
		if r.Host != "" {
			t.Host = amount.Sum(t.Host, r.Bytes)
		}
	}
	if a := u.Tree.Activations; a != nil {
		t.Peak = &Interval{amount.Sum(t.Stored, a.Low), amount.Sum(t.Stored, t.Gradients, a.High)}
	}
}

// gradient returns the bytes of the gradient of a parameter's part.
func (t *Tree) gradient(r *Row) int64 {
	if !r.Element.IsFloat() {
		return 0
	}
	element := r.Element
	if t.Gradients.Valid() {
		element = t.Gradients
	}
	return element.Bytes(amount.Product(r.Part...))
}

// Complete reports whether the sums have all arrays: every spec fits, and no size is
// beyond the limits.
func (u *Usage) Complete() bool {
	return !slices.ContainsFunc(u.Problems, func(p problem.Problem) bool { return p.Severity == problem.Error && p.Code != DeviceCapacity })
}

// Fits reports whether a step fits into the memory of a device. If the compiler decides
// this, or if a number is missing, known is false.
func (u *Usage) Fits() (fits, known bool) {
	capacity, least, most := u.Tree.Capacity, u.Totals.Stored, int64(math.MaxInt64)
	if peak := u.Totals.Peak; peak != nil {
		least, most = peak.Low, peak.High
	}
	switch {
	case capacity == 0:
		return false, false
	case least > capacity:
		return false, true
	}
	return true, most <= capacity && u.Complete()
}
