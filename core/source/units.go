package source

import "github.com/meshfeed/meshfeed/core/status"

// UnitsOf returns the units of a source, or Unsupported if it does not know them.
func UnitsOf(src Source) ([]int64, error) {
	if units := src.Facts().Units; units != nil {
		if sizes := units(); sizes != nil {
			return sizes, nil
		}
	}
	return nil, status.Errorf(status.Unsupported, "source", "the dataset has no unit boundaries").
		WithHint("give the number of records of a block: order \"blocks:W:B\" (Python: mf.Blocks(records=B)), with W = 0 for the default window")
}

// UnitsBetween returns the units of the records [start, stop). The first and the last
// may be parts of units.
func UnitsBetween(sizes []int64, start, stop int64) []int64 {
	list := []int64{}
	first := int64(0)
	for _, n := range sizes {
		if size := min(first+n, stop) - max(first, start); size > 0 {
			list = append(list, size)
		}
		first += n
	}
	return list
}
