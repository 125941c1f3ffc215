package raster

import (
	"fmt"
	"image"
	"io"
)

// decoderOfWebP decodes WebP files, and configOfWebP their headers; nil if no package does.
var (
	decoderOfWebP decoder
	configOfWebP  func(r io.Reader) (image.Config, error)
)

// UseWebP decodes WebP files with functions as image.RegisterFormat takes them. Lossy images are
// *image.YCbCr or *image.NYCbCrA, without a conversion of colors. Call it in an init function; package
// core/view/raster/webp does.
func UseWebP(decode func(r io.Reader) (image.Image, error), config func(r io.Reader) (image.Config, error)) {
	decoderOfWebP, configOfWebP = guarded(decode), config
}

// animated reports whether a WebP file says that it has several images.
func animated(start string) bool {
	return len(start) > 20 && start[12:16] == "VP8X" && start[20]&2 != 0
}

// guarded returns a decoder of WebP files for which a panic is an error of the file: golang.org/x/image/webp
// had some.
func guarded(decode decoder) decoder {
	return func(r io.Reader) (img image.Image, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("webp: %v", p)
			}
		}()
		img, err = decode(r)
		switch lossy := img.(type) {
		case *image.YCbCr:
			return studio{lossy}, err
		case *image.NYCbCrA:
			return studio{&lossy.YCbCr}, err
		}
		return img, err
	}
}

// studio is a lossy WebP image. Its colors have half the width and the height, and its values are from 16
// to 235 for the luma, and to 240 for colors, as in ITU-R BT.601.
type studio struct{ *image.YCbCr }

// line writes the pixels of a line from x on. Colors are interpolated: the nearest ones count 9/16, the next
// ones at a side 3/16 each, and the one across 1/16. This and the arithmetic are as in libwebp.
func (s studio) line(to []byte, x, y int) {
	w, h := (s.Rect.Dx()+1)/2, (s.Rect.Dy()+1)/2
	near, far := neighbors(y, h)
	near, far = near*s.CStride, far*s.CStride
	for ; len(to) > 0; to, x = to[4:], x+1 {
		at, side := neighbors(x, w)
		between := func(c []byte) int {
			return (9*int(c[near+at]) + 3*int(c[near+side]) + 3*int(c[far+at]) + int(c[far+side]) + 8) >> 4
		}
		luma, u, v := int(s.Y[y*s.YStride+x])*19077>>8, between(s.Cb), between(s.Cr)
		to[0] = clip(luma + v*26149>>8 - 14234)
		to[1] = clip(luma - u*6419>>8 - v*13320>>8 + 8708)
		to[2] = clip(luma + u*33050>>8 - 17685)
	}
}

// neighbors returns the nearest of n colors to pixel i, and the next one on the other side.
func neighbors(i, n int) (near, far int) {
	near = i / 2
	return near, min(max(near+i%2*2-1, 0), n-1)
}

// clip returns a value in units of 1/64.
func clip(v int) byte { return byte(min(max(v, 0)>>6, 255)) }
