package view

import (
	"sort"

	"github.com/meshfeed/meshfeed/core/source"
)

// unitsOf returns the units of a dataset, or nil if they are not known.
func unitsOf(src source.Source) []int64 {
	sizes, err := source.UnitsOf(src)
	if err != nil {
		return nil
	}
	return sizes
}

// CacheBytes implements source.Cached: the smallest cache of the datasets below.
func (b *base) CacheBytes() (least int64) {
	for _, s := range b.below {
		if n := source.CacheOf(s); n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	return least
}

// Cache returns where a dataset below keeps decoded units: the first that has a problem, or
// else the first that has a folder.
func (b *base) Cache() (found source.CacheInfo) {
	for _, s := range b.below {
		info := source.CacheInfoOf(s)
		if info.Problem != nil {
			return info
		}
		if found.Folder == "" {
			found = info
		}
	}
	return found
}

// Decoding returns the sum of the datasets below.
func (b *base) Decoding() (sum source.Work) {
	for _, s := range b.below {
		w := source.DecodingOf(s)
		sum.Running, sum.Waiting = sum.Running+w.Running, sum.Waiting+w.Waiting
	}
	return sum
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

// Units implements source.Units. Those of a take are not known.
func (c *chain) Units() []int64 {
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

// Units implements source.Units.
func (v *concat) Units() []int64 {
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

// Units implements source.Units. A window belongs to the unit in which it begins.
func (v *window) Units() []int64 {
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

// Units implements source.Units.
func (v *stack) Units() []int64 { return unitsOf(v.below[0]) }

// Units implements source.Units.
func (v *pad) Units() []int64 { return unitsOf(v.below[0]) }
