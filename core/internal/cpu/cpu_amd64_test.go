package cpu

import (
	"testing"

	xcpu "golang.org/x/sys/cpu"
)

// The answer is golang.org/x/sys's, which asks the same registers by its own code.
func TestBest(t *testing.T) {
	want := None
	if x := xcpu.X86; x.HasAVX2 {
		want = AVX2
		if x.HasAVX512F && x.HasAVX512DQ && x.HasAVX512BW && x.HasAVX512IFMA {
			want = AVX512
		}
	}
	if got := Best(); got != want {
		t.Errorf("the level is %v, want %v", got, want)
	}
}

// One bit less, of the processor or of what the system saves, is one level less
// or none.
func TestLevel(t *testing.T) {
	of := func(last, leaf1, leaf7, saved uint32) Level {
		return level(func(leaf, _ uint32) (a, b, c, d uint32) {
			switch leaf {
			case 0:
				return last, 0, 0, 0
			case 1:
				return 0, 0, leaf1, 0
			default:
				return 0, leaf7, 0, 0
			}
		}, func() uint32 {
			if leaf1&(1<<27) == 0 {
				t.Error("xgetbv where it is no instruction")
			}
			return saved
		})
	}
	const all = 1<<32 - 1
	if got := of(7, all, all, all); got != AVX512 {
		t.Errorf("with everything the level is %v", got)
	}
	if got := of(6, all, all, all); got != None {
		t.Errorf("without leaf 7 the level is %v", got)
	}
	for bit := range 32 {
		for name, c := range map[string]struct {
			got   Level
			lower map[int]Level
		}{
			"leaf 1": {of(7, all&^(1<<bit), all, all), map[int]Level{27: None, 28: None}},
			"leaf 7": {of(7, all, all&^(1<<bit), all), map[int]Level{5: None, 16: AVX2, 17: AVX2, 21: AVX2, 30: AVX2}},
			"saved":  {of(7, all, all, all&^(1<<bit)), map[int]Level{1: None, 2: None, 5: AVX2, 6: AVX2, 7: AVX2}},
		} {
			want, lower := c.lower[bit]
			if !lower {
				want = AVX512
			}
			if c.got != want {
				t.Errorf("without bit %d of %s the level is %v, want %v", bit, name, c.got, want)
			}
		}
	}
}
