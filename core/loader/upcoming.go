package loader

import (
	"slices"
	"sort"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/source"
)

// upcoming announces the units of the next window of a block order, while the loader
// delivers the records of the current one. So a source that decodes units does that in
// the background, and no batch waits at the edge of a window.
//
// The units are announced evenly over the first seven eighths of a window. They are not
// announced if they exceed what the source's cache has room for beside the current window.
//
// In the order of the records there are no windows. Then the units after the current step are announced if they
// are on other machines, where each read takes long: as many as take half of the cache.
type upcoming struct {
	firsts []int64 // by unit, and one after the last: the number of records before it
	row    int64   // bytes of a record, decoded
	cache  int64   // bytes that the source keeps decoded
	batch  int64
	far    bool // units are on other machines

	epoch      int64   // epoch of the current window
	start, end int64   // positions of the current window
	next       int64   // epoch of the next window
	list       []int64 // the first record of every unit of the next window that is to be announced
	announced  int     // how many of them were
	order      sampler.Order
}

// newUpcoming returns nil if units need not be announced, because the source has nothing
// to decode, or does not know its units. It also returns nil if the process has so few
// rows of a batch that it does not need every unit of a window.
func newUpcoming(src source.Source, p *plan, g grid) *upcoming {
	u := &upcoming{cache: source.CacheOf(src), batch: g.batch, far: source.FarBytesOf(src) > 0}
	if u.cache == 0 {
		return nil
	}
	sizes, err := source.UnitsOf(src)
	if err != nil || int64(p.rows.count)*src.Len() < g.batch*int64(len(sizes)) {
		return nil
	}
	u.firsts = make([]int64, 1, len(sizes)+1)
	for i, n := range sizes {
		u.firsts = append(u.firsts, u.firsts[i]+n)
	}
	for _, field := range p.fields() {
		u.row += int64(src.Schema().Fields[field].RowBytes())
	}
	return u
}

// advance announces some units of the window after the one with the cursor c. The next
// step begins at c.
func (u *upcoming) advance(w *window, c batch.Cursor) {
	if _, ok := w.inEpoch(c.Epoch).(sampler.Windowed); !ok {
		if u.far && w.order.Name() == sampler.Sequential {
			u.follow(w, c)
		}
		return
	}
	if u.order != w.order || c.Epoch != u.epoch || c.Position < u.start || c.Position >= u.end {
		u.enter(w, c)
	}
	size := float64(u.end-u.start) * 7 / 8
	done := min(1, float64(c.Position+u.batch-u.start)/size)
	if n := int(done * float64(len(u.list))); n > u.announced {
		w.announce(w.draw(u.next), u.list[u.announced:n])
		u.announced = n
	}
}

// follow announces the units that begin soon after a cursor, in the order of the records. The units of the records
// [start, end) were announced.
func (u *upcoming) follow(w *window, c batch.Cursor) {
	if u.order != w.order || c.Epoch != u.epoch || c.Position < u.start || c.Position > u.end {
		u.order, u.epoch, u.end = w.order, c.Epoch, c.Position
	}
	u.start, u.list = c.Position, u.list[:0]
	limit := min(c.Position+u.cache/2/max(u.row, 1), w.order.Len())
	unit := sort.Search(len(u.firsts), func(i int) bool { return u.firsts[i] >= u.end })
	for ; unit < len(u.firsts)-1 && u.firsts[unit] < limit; unit++ {
		if u.end = u.firsts[unit+1]; u.firsts[unit] < u.end {
			u.list = append(u.list, u.firsts[unit])
		}
	}
	if len(u.list) > 0 {
		w.announce(w.draw(c.Epoch), u.list)
	}
}

// enter makes the window at a cursor the current one, and lists the units of the next.
func (u *upcoming) enter(w *window, c batch.Cursor) {
	u.order, u.epoch, u.list, u.announced = w.order, c.Epoch, u.list[:0], 0
	current := w.inEpoch(c.Epoch).(sampler.Windowed)
	end, blocks := current.Window(c.Position)
	u.end, u.start = end, end
	for _, b := range blocks {
		u.start -= b[1] - b[0]
	}
	next := batch.Cursor{Epoch: c.Epoch, Position: end}
	if end == w.order.Len() {
		next = batch.Cursor{Epoch: c.Epoch + 1}
	}
	if u.next = next.Epoch; w.until > 0 && u.next >= w.until {
		return
	}
	room := u.cache
	for _, unit := range u.units(blocks) {
		room -= u.bytes(unit)
	}
	_, blocks = w.inEpoch(next.Epoch).(sampler.Windowed).Window(next.Position)
	for _, unit := range u.units(blocks) {
		if room -= u.bytes(unit); room < 0 {
			return
		}
		u.list = append(u.list, u.firsts[unit])
	}
}

// bytes returns the bytes of a unit, decoded.
func (u *upcoming) bytes(unit int) int64 { return (u.firsts[unit+1] - u.firsts[unit]) * u.row }

// units returns the units with the records of blocks, in their order in the
// dataset.
func (u *upcoming) units(blocks [][2]int64) (list []int) {
	for _, b := range blocks {
		unit := sort.Search(len(u.firsts), func(i int) bool { return u.firsts[i] > b[0] }) - 1
		for ; u.firsts[unit] < b[1]; unit++ {
			if u.firsts[unit] < u.firsts[unit+1] {
				list = append(list, unit)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
