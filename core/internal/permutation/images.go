package permutation

// abreast is the number of Feistel networks that interleave their rounds. In a single
// network every product depends on the previous one, so the processor would wait.
const abreast = 8

// Images sets dst[i] to of[i].At(at[i]). If consecutive permutations differ, it is
// several times faster than calls of At. All must have the same size.
func Images(dst []int64, of []Permutation, at []int64) {
	if len(of) == 0 {
		return
	}
	if _, ok := of[0].(*feistel); !ok {
		for i, p := range of {
			dst[i] = p.At(at[i])
		}
		return
	}
	for len(of) > abreast {
		images(dst[:abreast], of, at)
		dst, of, at = dst[abreast:], of[abreast:], at[abreast:]
	}
	images(dst[:len(of)], of, at)
}

// images computes as many images as dst holds, at most abreast.
func images(dst []int64, of []Permutation, at []int64) {
	var f [abreast]*feistel
	var l, r [abreast]uint64
	n, a, b := of[0].Len(), of[0].(*feistel).a, of[0].(*feistel).b
	for j := range f {
		k := min(j, len(dst)-1) // lanes past the end of dst repeat its last image
		check(at[k], 1, n)
		f[j] = of[k].(*feistel)
		l[j], r[j] = uint64(at[k])/b, uint64(at[k])%b
	}
	for i := 0; i < rounds; i += 2 {
		for j := range l {
			l[j] = add(l[j], addend(r[j], f[j].keys[i], a), a)
		}
		for j := range r {
			r[j] = add(r[j], addend(l[j], f[j].keys[i+1], b), b)
		}
	}
	for j := range dst {
		x := l[j]*b + r[j]
		if x >= f[j].n {
			x = f[j].walk(x)
		}
		dst[j] = int64(x)
	}
}
