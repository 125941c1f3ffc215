package raster

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/png"
	"os"
	"testing"
)

// blocks are the lines of a part of an image of random colors.
type blocks struct {
	part   image.Rectangle // what Next has not returned
	closed *bool
}

func colorOf(x, y int) color.NRGBA {
	return color.NRGBA{uint8(x * x * 7), uint8(y * 31), uint8((x + 3) * y), 255}
}

func (b *blocks) Next() (line []byte, err error) {
	for x := b.part.Min.X; x < b.part.Max.X; x++ {
		c := colorOf(x, b.part.Min.Y)
		line = append(line, c.R, c.G, c.B, 99)
	}
	b.part.Min.Y++
	return line, nil
}

func (b *blocks) Close() error {
	if *b.closed = true; b.part.Min.Y != b.part.Max.Y {
		return errors.New("lines were left over")
	}
	return nil
}

// TestUseJPEG: rasters from a fraction of the size are rasters of an image with larger pixels. The fraction is
// the smallest with twice the pixels of the raster.
func TestUseJPEG(t *testing.T) {
	defer UseJPEG(decoderOfJPEG)
	file, err := os.ReadFile("testdata/frozen.jpg") // 83 × 61 pixels
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		o     Options
		scale int
	}{
		{Options{Height: 3, Width: 3}, 8},
		{Options{Height: 3, Width: 5}, 8},
		{Options{Height: 4, Width: 4}, 4},
		{Options{Height: 15, Width: 15}, 2},
		{Options{Height: 16, Width: 16}, 1},
		{Options{Height: 90, Width: 1}, 1},
	} {
		for key := range uint32(20) {
			c.o.RandomCrop, c.o.RandomFlip = key > 0, key > 0
			var scale int
			var closed bool
			UseJPEG(JPEG{Name: "blocks", Open: func(_ []byte, size image.Point, asked int, part image.Rectangle) (Lines, error) {
				if scale = asked; size != image.Pt(83, 61) {
					t.Errorf("the size is %v", size)
				}
				return &blocks{part, &closed}, nil
			}})
			got, want := make([]byte, c.o.Height*c.o.Width*3), make([]byte, c.o.Height*c.o.Width*3)
			if err := Decode(got, file, c.o, [2]uint32{key}); err != nil || !closed {
				t.Errorf("%v, key %d: closed %v, %v", c.o, key, closed, err)
			}
			if key == 0 && scale != c.scale {
				t.Errorf("%v: 1/%d of the size, want 1/%d", c.o, scale, c.scale)
			}
			img := image.NewNRGBA(image.Rect(0, 0, 83, 61))
			for y := range 61 {
				for x := range 83 {
					img.SetNRGBA(x, y, colorOf(x/scale, y/scale))
				}
			}
			var b bytes.Buffer
			if err := png.Encode(&b, img); err != nil {
				t.Fatal(err)
			}
			if err := Decode(want, b.Bytes(), c.o, [2]uint32{key}); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%v, key %d, 1/%d: %v\ngot  %v\nwant %v", c.o, key, scale, err, got, want)
			}
		}
	}
}
