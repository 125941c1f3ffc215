package table

import "github.com/meshfeed/meshfeed/core/dtype"

// Plain describes rows that lie in memory one after the other, each element
// whole bytes. It is false for a shape that no row can have.
func Plain(name string, typ dtype.Type, shape []int) (*Field, bool) {
	f := &Field{Name: name, Type: typ, Shape: append([]int{}, shape...)}
	bytes := typ.Size()
	for _, n := range shape {
		if n <= 0 || bytes > maxRowBytes/n || len(shape) > maxRank {
			return nil, false
		}
		bytes *= n
		f.Nodes = append(f.Nodes, Node{Kind: Fixed, Size: n})
	}
	f.Nodes = append(f.Nodes, Node{Kind: Values, Size: typ.Size()})
	return f, true
}

// RowElements gives the number of elements of a row.
func (f *Field) RowElements() int {
	n := 1
	for _, d := range f.Shape {
		n *= d
	}
	return n
}

// Planes gives the planes of a field without lists or nulls whose values begin
// at the positions.
func (f *Field) Planes(values []int64) []Plane {
	planes := make([]Plane, len(f.Nodes))
	planes[len(planes)-1].Data = values
	return planes
}
