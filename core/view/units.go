package view

import (
	"sort"

	"github.com/meshfeed/meshfeed/core/source"
)

// unitsOf returns the units of a dataset, or nil if they are not known.
func unitsOf(src source.Source) []int64 {
	if units := src.Facts().Units; units != nil {
		return units()
	}
	return nil
}

// counted returns the units of a view. before returns how many of its records precede
// a record below. Units without a record of the view are left out.
func counted(sizes []int64, before func(record int64) int64) []int64 {
	list := []int64{}
	end, earlier := int64(0), int64(0)
	for _, n := range sizes {
		end += n
		if records := before(end); records > earlier {
			list = append(list, records-earlier)
			earlier = records
		}
	}
	return list
}

// unitSizes returns the units of the chain. The units of a take are not known.
func (c *chain) unitSizes() []int64 {
	sizes := unitsOf(c.src)
	for _, s := range c.steps {
		if sizes == nil {
			return nil
		}
		sizes = s.units(sizes)
	}
	return sizes
}

func (s slice) units(sizes []int64) []int64 { return source.UnitsBetween(sizes, s.start, s.stop) }

func (take) units([]int64) []int64 { return nil }

func (f filter) units(sizes []int64) []int64 { return counted(sizes, f.count) }

// units returns the units of all datasets.
func (v *concat) units() []int64 {
	list := []int64{}
	for _, s := range v.below {
		sizes := unitsOf(s)
		if sizes == nil {
			return nil
		}
		list = append(list, sizes...)
	}
	return list
}

// units returns the units of the view. A window belongs to the unit where it begins.
func (v *window) units() []int64 {
	sizes := unitsOf(v.below[0])
	if sizes == nil {
		return nil
	}
	return counted(sizes, v.before)
}

// before returns how many windows begin before a record.
func (v *window) before(record int64) int64 {
	run := sort.Search(len(v.runs), func(i int) bool { return v.runs[i] >= record }) - 1
	if run < 0 {
		return 0
	}
	end := v.records
	if run+1 < len(v.firsts) {
		end = v.firsts[run+1]
	}
	return min(v.firsts[run]+(record-v.runs[run]+v.Stride-1)/v.Stride, end)
}
