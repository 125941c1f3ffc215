package raster

import (
	"fmt"
	"image"
	"math/rand/v2"
	"testing"

	"github.com/meshfeed/meshfeed/tests/random"
)

// TestMean: multiplying by the reciprocal divides exactly, up to the largest image.
func TestMean(t *testing.T) {
	random.Rounds(t, 20_000, 200_000, func(t *testing.T, r *rand.Rand) {
		n := random.One(r, MaxPixels-r.IntN(100), 1+r.IntN(MaxPixels), 1+r.IntN(1000), 1<<r.IntN(27))
		q := uint64(r.IntN(256))
		for _, sum := range []uint64{uint64(r.Int64N(255*int64(n) + 1)), min(q*uint64(n)+uint64(n)/2, 255*uint64(n)), 255 * uint64(n)} {
			if got, want := uint64(meanOf(n).of(sum)), (2*sum+uint64(n))/uint64(2*n); got != want {
				t.Fatalf("%d / %d: %d instead of %d", sum, n, got, want)
			}
		}
	})
}

// TestRandomCrop: parts lie in the image, have the chosen proportions and sizes, and depend on the key alone.
func TestRandomCrop(t *testing.T) {
	o := Options{Height: 50, Width: 100, RandomCrop: true, RandomFlip: true}
	b := image.Rect(3, 4, 3+640, 4+480)
	var areas, flips, edges, narrow float64
	const n = 4000
	for i := range uint32(n) {
		part, flip := choose(b, o, [2]uint32{7, i})
		if again, same := choose(b, o, [2]uint32{7, i}); again != part || same != flip {
			t.Fatalf("%v and %v", part, again)
		}
		proportions := float64(part.Dx()) / float64(part.Dy()) / 2
		if !part.In(b) || proportions < 0.73 || proportions > 1.36 {
			t.Fatalf("part %v of %v, proportions %v", part, b, proportions)
		}
		areas += float64(part.Dx()*part.Dy()) / (640 * 480) / n
		if room := float64(b.Dx() - part.Dx()); room > 100 {
			edges, narrow = edges+float64(part.Min.X-b.Min.X)/room, narrow+1
		}
		if flip {
			flips += 1. / n
		}
	}
	// 640 × 480 has room for two thirds of its area at these proportions, so the mean is below 0.54.
	if areas < 0.35 || areas > 0.54 || flips < 0.45 || flips > 0.55 || edges/narrow < 0.45 || edges/narrow > 0.55 {
		t.Errorf("mean area %v, flips %v, edges %v", areas, flips, edges/narrow)
	}
	for _, b := range []image.Rectangle{image.Rect(0, 0, 1, 1), image.Rect(0, 0, 1, 60_000), image.Rect(0, 0, 60_000, 1)} {
		if part, _ := choose(b, o, [2]uint32{1, 2}); part.Empty() || !part.In(b) {
			t.Errorf("part %v of %v", part, b)
		}
	}
}

// TestRandomFrozen compares crops with what random.1 stands for.
func TestRandomFrozen(t *testing.T) {
	o := Options{Height: 224, Width: 224, RandomCrop: true, RandomFlip: true}
	for i, want := range []string{"(190,143)-(353,306) false", "(158,0)-(460,375) true", "(22,8)-(270,301) false"} {
		part, flip := choose(image.Rect(0, 0, 500, 375), o, [2]uint32{1, uint32(i)})
		if got := fmt.Sprint(part, flip); got != want {
			t.Errorf("key %d: %s instead of %s", i, got, want)
		}
	}
}
