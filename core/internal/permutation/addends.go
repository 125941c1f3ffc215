package permutation

// maxTabulated is the largest size that has a table of addends. Its halves are at most
// 2^16, so each addend has 16 bits, and all of them take 1.3 MB.
const maxTabulated = 1 << 32

// addends holds the addends of a network for every round and every half. There are
// about 10·√n of them, so a list of positions needs no hashes. That makes Fill five
// times faster than At.
type addends struct {
	*feistel
	of [rounds][]uint16
}

func (f *feistel) computeAddends() *addends {
	t := &addends{feistel: f}
	all := make([]uint16, rounds/2*(f.a+f.b))
	for i := range t.of {
		halves, m := f.b, f.a
		if i%2 == 1 {
			halves, m = f.a, f.b
		}
		t.of[i], all = all[:halves:halves], all[halves:]
		for y := range t.of[i] {
			t.of[i][y] = uint16(addend(uint64(y), f.keys[i], m))
		}
	}
	return t
}

// lanes is the number of elements that pass through a round together. They do not
// depend on each other, so the processor overlaps them.
const lanes = 64

// fill sets dst[i] to the image of position+i.
func (t *addends) fill(dst []int64, position uint64) {
	var ls, rs [lanes]uint64
	left, right := position/t.b, position%t.b
	for len(dst) > 0 {
		n := min(lanes, len(dst))
		l, r := ls[:n], rs[:n]
		for j := range l {
			l[j], r[j] = left, right
			if right++; right == t.b {
				left, right = left+1, 0
			}
		}
		t.pass(l, r)
		for j := range l {
			x := l[j]*t.b + r[j]
			if x >= t.n {
				x = t.walk(x)
			}
			dst[j] = int64(x)
		}
		dst = dst[n:]
	}
}

// pass replaces the halves of elements by the halves of their images.
func (t *addends) pass(l, r []uint64) {
	a, b := t.a, t.b
	r = r[:len(l)]
	for i := 0; i < rounds; i += 2 {
		toL, toR := t.of[i], t.of[i+1]
		for j, y := range r {
			x := add(l[j], uint64(toL[y]), a)
			l[j], r[j] = x, add(y, uint64(toR[x]), b)
		}
	}
}
