package raster

import (
	"image"
	"math"

	"github.com/meshfeed/meshfeed/core/internal/permutation"
)

// choose returns the part of an image that becomes the raster, and whether it is flipped.
func choose(b image.Rectangle, o Options, key [2]uint32) (part image.Rectangle, flip bool) {
	flip = o.RandomFlip && number(key, 5) < 0.5
	if !o.RandomCrop {
		return center(b, o), flip
	}
	u1, u2, u3, u4 := number(key, 1), number(key, 2), number(key, 3), number(key, 4)
	w, h := float64(b.Dx()), float64(b.Dy())
	proportions := float64(o.Width) / float64(o.Height)
	if u2 < 0.5 {
		proportions /= 1 + (1-2*u2)/3
	} else {
		proportions *= 1 + (2*u2-1)/3
	}
	area := float64(w*h) * (0.08 + float64(0.92*u1)) // a conversion forbids to fuse operations, which rounds otherwise
	width, height := math.Sqrt(area*proportions), math.Sqrt(area/proportions)
	shrink := max(1, width/w, height/h)
	cw, ch := rounded(width/shrink, b.Dx()), rounded(height/shrink, b.Dy())
	at := b.Min.Add(image.Pt(int(u3*float64(b.Dx()+1-cw)), int(u4*float64(b.Dy()+1-ch))))
	return image.Rectangle{at, at.Add(image.Pt(cw, ch))}, flip
}

func rounded(size float64, most int) int { return min(max(1, int(math.Floor(size+0.5))), most) }

// center returns the largest part of an image with the proportions of the raster, in the middle.
func center(b image.Rectangle, o Options) image.Rectangle {
	w, h := b.Dx(), b.Dy()
	part := func(of, numerator, denominator int) int { return max(1, (2*of*numerator+denominator)/(2*denominator)) }
	switch {
	case w*o.Height > h*o.Width:
		w = min(w, part(h, o.Width, o.Height))
	case w*o.Height < h*o.Width:
		h = min(h, part(w, o.Height, o.Width))
	}
	at := b.Min.Add(image.Pt((b.Dx()-w)/2, (b.Dy()-h)/2))
	return image.Rectangle{at, at.Add(image.Pt(w, h))}
}

// number returns number i of a record, from 0 to 1, as a multiple of 2^-53.
func number(key [2]uint32, i uint64) float64 {
	h := permutation.Hash(uint64(key[0])<<32|uint64(key[1]), i)
	return float64(h>>11) / (1 << 53)
}
