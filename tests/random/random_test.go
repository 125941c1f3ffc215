package random

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// A given seed replaces all others and yields the same numbers.
func TestSeed(t *testing.T) {
	defer func(before uint64) { *seed = before }(*seed)
	*seed = 17
	want := From(17).Uint64()
	if got := New(t).Uint64(); got != want {
		t.Errorf("New begins with %d, want %d", got, want)
	}
	rounds := 0
	Rounds(t, 5, 50, func(t *testing.T, r *rand.Rand) {
		rounds++
		if got := r.Uint64(); got != want || t.Name() != "TestSeed/seed=17" {
			t.Errorf("%s begins with %d, want %d", t.Name(), got, want)
		}
	})
	if rounds != 1 {
		t.Errorf("%d rounds of one seed", rounds)
	}
}

// Without a seed every round draws different numbers.
func TestRounds(t *testing.T) {
	t.Setenv("MESHFEED_DEEP", "")
	defer func(before uint64) { *seed = before }(*seed)
	*seed = 0
	drawn := map[uint64]bool{}
	Rounds(t, 5, 50, func(_ *testing.T, r *rand.Rand) { drawn[r.Uint64()] = true })
	if len(drawn) != Count(5, 50) {
		t.Errorf("%d of 5 rounds differ", len(drawn))
	}
}

// Draws are consistent: axes divide the dimensions that they partition, and fit
// the number of devices.
func TestDraws(t *testing.T) {
	Rounds(t, 300, 3000, func(t *testing.T, r *rand.Rand) {
		devices := 1 + r.IntN(70)
		axes, size := Axes(r, devices)
		product, sizes := 1, map[string]int{}
		for _, a := range axes {
			product *= a.Size
			sizes[a.Name] = a.Size
		}
		if product != size || size > devices || len(sizes) != len(axes) {
			t.Fatalf("%v of %d devices: the size is %d", axes, devices, size)
		}
		for _, f := range Fields(r, 6, 12) {
			shape := append([]int{24}, f.Shape...)
			used := map[string]bool{}
			for d, entry := range Spec(r, axes, shape) {
				for _, name := range entry {
					if sizes[name] == 0 || used[name] || shape[d]%sizes[name] != 0 {
						t.Fatalf("axis %q of %v on dimension %d of %v", name, axes, d, shape)
					}
					used[name], shape[d] = true, shape[d]/sizes[name]
				}
			}
		}
	})
}

// Damage does not change the file, and nearly always changes the copy.
func TestDamage(t *testing.T) {
	r, changed := New(t), 0
	file := []byte("ARROW1\x00\x00 and what follows it")
	for range 1000 {
		before := slices.Clone(file)
		damaged := Damage(r, file)
		if !bytes.Equal(file, before) {
			t.Fatalf("the file is %q now", file)
		}
		if !bytes.Equal(damaged, file) {
			changed++
		}
	}
	if changed < 900 {
		t.Errorf("%d of 1000 copies were changed", changed)
	}
}
