package raster

import (
	"image"
	"image/draw"
	"math/bits"
	"slices"
	"sync"
)

// scratch is the working memory of resizing.
type scratch struct {
	line    []byte       // pixels of a line of the image, four bytes each; the fourth has no meaning
	palette [256][4]byte // of the image, if it has one
	runs    []run        // by pixel of a line of the raster
	row     []uint32     // a line of the image with the width of the raster, in units of 1 / part width
	sums    []uint64     // the line of the raster that is being summed
}

var pool = sync.Pool{New: func() any { return new(scratch) }}

// run is what a pixel of the raster covers of a line: a part of a pixel, whole pixels, and a part of
// another.
type run struct {
	start, end  int // of the bytes of all its pixels
	first, last uint32
}

// resize writes the means of a part of an image to dst, from the left or from the right.
func (s *scratch) resize(dst []byte, p picture, o Options) error {
	w, h := p.size.X, p.size.Y
	if s.begin(p, o.Width); p.flip {
		slices.Reverse(s.runs)
	}
	mean, y, end := meanOf(w*h), 0, 0
	for j := 1; end < h*o.Height; j++ {
		line, err := p.lines.Next()
		if err != nil {
			return err
		}
		s.squeeze(line, uint32(p.scale*o.Width))
		start := end
		end = min(j*p.scale-p.begin.Y, h) * o.Height // in units of 1/height of a pixel of the image
		for y < o.Height && y*h < end {
			from, to := max(start, y*h), min(end, (y+1)*h)
			weight := uint64(to - from)
			sums := s.sums[:len(s.row)]
			for k, v := range s.row {
				sums[k] += weight * uint64(v)
			}
			if to < (y+1)*h {
				break // the next line of the image continues this one
			}
			dst = mean.write(dst, s.sums, o.Gray)
			clear(s.sums)
			y++
		}
	}
	return nil
}

// begin prepares the memory for a picture, which becomes a raster of a width.
func (s *scratch) begin(p picture, width int) {
	s.row = slices.Grow(s.row[:0], 3*width)[:3*width]
	s.sums = slices.Grow(s.sums[:0], 3*width)[:3*width]
	clear(s.sums)
	s.runs = s.runs[:0]
	pixel := p.scale * width // of a line, in units of 1/width of a pixel of the image
	for x := range width {
		from, to := p.begin.X*width+x*p.size.X, p.begin.X*width+(x+1)*p.size.X
		first, end := from/pixel, (to+pixel-1)/pixel
		r := run{start: 4 * first, end: 4 * end, first: uint32(min((first+1)*pixel, to) - from)}
		if end-first > 1 {
			r.last = uint32(to - (end-1)*pixel)
		}
		s.runs = append(s.runs, r)
	}
}

// decoded are the lines of a part of an image in memory.
type decoded struct {
	*scratch
	img  image.Image
	part image.Rectangle // what Next has not returned
}

// linesOf returns the lines of a part of an image.
func (s *scratch) linesOf(img image.Image, part image.Rectangle) Lines {
	s.line = slices.Grow(s.line[:0], 4*part.Dx())[:4*part.Dx()]
	if p, ok := img.(*image.Paletted); ok {
		clear(s.palette[:])
		for i, c := range p.Palette[:min(len(p.Palette), 256)] {
			one := image.NewNRGBA(image.Rect(0, 0, 1, 1))
			one.Set(0, 0, c)
			copy(s.palette[i][:], one.Pix)
		}
	}
	return &decoded{s, img, part}
}

// Close implements Lines.
func (*decoded) Close() error { return nil }

// Next implements Lines.
func (d *decoded) Next() ([]byte, error) {
	s, n, at := d.scratch, len(d.line), d.part.Min
	d.part.Min.Y++
	switch img := d.img.(type) {
	case *image.RGBA:
		return img.Pix[img.PixOffset(at.X, at.Y):][:n], nil
	case *image.NRGBA:
		return img.Pix[img.PixOffset(at.X, at.Y):][:n], nil
	case *image.RGBA64:
		s.upper(img.Pix[img.PixOffset(at.X, at.Y):], 8, 2)
	case *image.NRGBA64:
		s.upper(img.Pix[img.PixOffset(at.X, at.Y):], 8, 2)
	case *image.Gray16:
		s.upper(img.Pix[img.PixOffset(at.X, at.Y):], 2, 0)
	case *image.Paletted:
		for i, index := range img.Pix[img.PixOffset(at.X, at.Y):][:n/4] {
			copy(s.line[4*i:], s.palette[index][:])
		}
	case studio:
		img.line(s.line, at.X, at.Y)
	default: // YCbCr, Gray and CMYK, which have no transparency
		line := &image.RGBA{Pix: s.line, Stride: n, Rect: image.Rect(0, 0, n/4, 1)}
		draw.Draw(line, line.Rect, img, at, draw.Src)
	}
	return s.line, nil
}

// upper takes the upper bytes of 16-bit channels: channel is the distance of one from the next, 0 for
// gray.
func (s *scratch) upper(from []byte, pixel, channel int) {
	for i := 0; i < len(s.line); i += 4 {
		for c := range 3 {
			s.line[i+c] = from[i/4*pixel+c*channel]
		}
	}
}

// squeeze sums what each pixel of the raster covers of a line.
func (s *scratch) squeeze(line []byte, whole uint32) {
	row := s.row
	for x := range s.runs {
		run := &s.runs[x]
		p, to := line[run.start:run.end], row[:3:3]
		row = row[3:]
		first := (*[4]byte)(p)
		r, g, b := run.first*uint32(first[0]), run.first*uint32(first[1]), run.first*uint32(first[2])
		if len(p) > 4 {
			last := (*[4]byte)(p[len(p)-4:])
			r, g, b = r+run.last*uint32(last[0]), g+run.last*uint32(last[1]), b+run.last*uint32(last[2])
			for p = p[4 : len(p)-4]; len(p) >= 4; p = p[4:] {
				r, g, b = r+whole*uint32(p[0]), g+whole*uint32(p[1]), b+whole*uint32(p[2])
			}
		}
		to[0], to[1], to[2] = r, g, b
	}
}

// mean divides by the pixels of a part, rounding to the nearest integer.
type mean struct{ pixels, reciprocal uint64 }

// meanOf returns the mean of n pixels. With n up to [MaxPixels], 2 × sum + n is below 2^36, and 2n
// below 2^28, so multiplying by the reciprocal, rounded up, gives the exact quotient.
func meanOf(n int) mean {
	return mean{uint64(n), ^uint64(0)/uint64(2*n) + 1}
}

func (m mean) of(sum uint64) uint32 {
	q, _ := bits.Mul64(2*sum+m.pixels, m.reciprocal)
	return uint32(q)
}

// write writes a line of the raster to dst, and returns the rest of dst.
func (m mean) write(dst []byte, sums []uint64, gray bool) []byte {
	if !gray {
		for i, sum := range sums {
			dst[i] = byte(m.of(sum))
		}
		return dst[len(sums):]
	}
	for i := range len(sums) / 3 {
		r, g, b := m.of(sums[3*i]), m.of(sums[3*i+1]), m.of(sums[3*i+2])
		dst[i] = byte((19595*r + 38470*g + 7471*b + 1<<15) >> 16)
	}
	return dst[len(sums)/3:]
}
