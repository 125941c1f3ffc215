package source

import "github.com/meshfeed/meshfeed/core/status"

// Units is implemented by a Source that knows in which units it is stored. A unit is a
// run of records that are read or decoded together, such as a record batch.
type Units interface {
	// Units returns the number of records of every unit, in the order of the
	// records, or nil if the units are not known. It reads nothing. The caller
	// must not change the list.
	Units() []int64
}

// UnitsOf returns the units of a source, or Unsupported if it does not know them.
func UnitsOf(src Source) ([]int64, error) {
	if u, ok := src.(Units); ok {
		if sizes := u.Units(); sizes != nil {
			return sizes, nil
		}
	}
	return nil, status.Errorf(status.Unsupported, "source", "the dataset does not know in which units it is stored").
		WithHint("give the number of records of a block: order \"blocks:W:B\" (Python: mf.Blocks(records=B)), with W = 0 for the default window")
}

// Cached is implemented by a Source that has to decode whole units, and keeps some of
// them decoded.
type Cached interface {
	// CacheBytes returns the most bytes of decoded rows that the source keeps in
	// memory, or 0 if nothing has to be decoded.
	CacheBytes() int64
}

// CacheOf returns the CacheBytes of a source, or 0 if it is not Cached.
func CacheOf(src Source) int64 {
	if c, ok := src.(Cached); ok {
		return c.CacheBytes()
	}
	return 0
}

// CacheInfo says where a source keeps decoded units.
type CacheInfo struct {
	Folder string // "" if only memory is used, or if nothing was kept on disk yet
	Limit  int64  // the most bytes of all files in the folder

	// Problem says why units are kept in memory only, although they exceed it and the
	// user has not chosen that; nil if there is no problem.
	Problem error
}

// CacheInfoOf returns the cache of a source, which may be a view of several.
func CacheInfoOf(src Source) CacheInfo {
	if c, ok := src.(interface{ Cache() CacheInfo }); ok {
		return c.Cache()
	}
	return CacheInfo{}
}

// UnitsBetween returns the units of the records [start, stop), of which the first and
// the last may be parts of units.
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
