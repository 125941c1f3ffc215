package table

import (
	"slices"
	"unsafe"

	"github.com/meshfeed/meshfeed/internal/gather"
)

// origins turn records into addresses once all files are resident. If the batch of
// record r has entry e in the index, the row begins at origin[e] + r*stride.
// There is one list per field, nil for a column that is not direct. The last entry
// of a list is for record -1: it is the stride, so that the address becomes 0.
type origins [][]uintptr

// resident returns the origins, or nil until all files are in memory.
func (g *Gatherer) resident() origins {
	if o := g.origins.Load(); o != nil {
		return *o
	}
	if !g.table.inMemory() {
		return nil
	}
	o := make(origins, len(g.columns))
	for i := range g.columns {
		if a := &g.columns[i]; a.direct {
			o[i] = g.table.origins(a)
		}
	}
	g.origins.Store(&o)
	return o
}

// inMemory reports whether all files are resident and need no decoding.
func (t *Table) inMemory() bool {
	if t.Store == nil {
		return true
	}
	for file := range t.countFiles() {
		if _, ok := t.Store.Base(file); !ok || t.Units != nil && t.Units.Encoded(file) {
			return false
		}
	}
	return true
}

// origins returns the origins of one field.
func (t *Table) origins(a *addressed) []uintptr {
	data, x := a.column.Planes[len(a.column.Planes)-1].Data, t.Index
	list := make([]uintptr, x.Entries()+1)
	for p := range x.Entries() {
		batch := x.Batch(p)
		begin := uintptr(data[batch])
		if t.Store != nil {
			base, _ := t.Store.Base(t.file(batch))
			begin += base
		}
		if a.packed {
			begin = gather.BitAddress(begin, 0)
		}
		list[p] = begin - uintptr(x.Start(p)*a.stride)
	}
	list[x.Entries()] = uintptr(a.stride)
	return list
}

// setAddresses computes the addresses of all rows of a field.
func (s *gatherState) setAddresses(origin []uintptr, stride uintptr) {
	records := s.records
	address := s.work.Addresses(len(records))
	switch {
	case !s.single:
		entry := s.entries()
		for i, r := range records {
			address[i] = origin[entry[i]] + uintptr(r)*stride
		}
	case s.zeros:
		for i, r := range records {
			// The sign bit selects the entry: 0 for a record, 1 for -1.
			address[i] = origin[uint64(r)>>63] + uintptr(r)*stride
		}
	default:
		first := origin[0]
		for i, r := range records {
			address[i] = first + uintptr(r)*stride
		}
	}
}

// copyElements does the jobs of a field of small elements without a list of
// addresses. It returns false if a record is -1, or a job takes another part of rows.
func (s *gatherState) copyElements(jobs []gather.Job, origin []uintptr, stride uintptr) bool {
	if s.zeros || slices.ContainsFunc(jobs, func(j gather.Job) bool { return j.Program.Element() == 0 }) {
		return false
	}
	for _, j := range jobs {
		e := elements{records: s.records[j.Rows[0]:j.Rows[1]], origin: origin, stride: stride}
		if !s.single {
			e.entry = s.entries()[j.Rows[0]:j.Rows[1]]
		}
		e.copy(j.Dst, j.Program.Element())
	}
	return true
}

// elements are the elements of some records; [origins] describes how their addresses
// follow. If entry is nil, all of them are in the batch of origin[0].
type elements struct {
	records []int64
	entry   []uint32
	origin  []uintptr
	stride  uintptr
}

// copy copies the elements one after the other to dst. The size of an element is a
// power of two, up to 32 bytes.
func (e elements) copy(dst []byte, size int) {
	to := unsafe.Pointer(unsafe.SliceData(dst))
	switch size {
	case 1:
		copyEach((*uint8)(to), e)
	case 2:
		copyEach((*uint16)(to), e)
	case 4:
		copyEach((*uint32)(to), e)
	case 8:
		copyEach((*uint64)(to), e)
	case 16:
		copyEach((*[16]byte)(to), e)
	case 32:
		copyEach((*[32]byte)(to), e)
	}
}

// copyEach copies the elements as values of type T. The computed addresses are valid
// pointers: the table keeps the memory, and Go's garbage collector does not move it.
func copyEach[T uint8 | uint16 | uint32 | uint64 | [16]byte | [32]byte](to *T, e elements) {
	dst, origin, stride := unsafe.Slice(to, len(e.records)), e.origin, e.stride
	if e.entry == nil {
		first := origin[0]
		for i, r := range e.records {
			at := first + uintptr(r)*stride
			dst[i] = **(**T)(unsafe.Pointer(&at))
		}
		return
	}
	entry := e.entry[:len(dst)]
	for i, r := range e.records {
		at := origin[entry[i]] + uintptr(r)*stride
		dst[i] = **(**T)(unsafe.Pointer(&at))
	}
}
