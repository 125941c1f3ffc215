package raster_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/core/view/raster"
	_ "github.com/meshfeed/meshfeed/core/view/raster/webp"
	"github.com/meshfeed/meshfeed/tests/random"
)

// decode returns the raster of an encoded image.
func decode(t *testing.T, encoded []byte, o raster.Options) []byte {
	t.Helper()
	dst := bytes.Repeat([]byte{0xEE}, o.Height*o.Width*o.Channels())
	if err := raster.Decode(dst, encoded, o, [2]uint32{}); err != nil {
		t.Fatal(err)
	}
	return dst
}

// pngOf encodes an image.
func pngOf(t testing.TB, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// noise returns an image of random opaque colors.
func noise(r *rand.Rand, width, height int) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	for i := range img.Pix {
		if img.Pix[i] = byte(r.Uint32()); i%4 == 3 {
			img.Pix[i] = 255
		}
	}
	return img
}

// TestArea compares means with sums over a grid so fine that each of its cells is in one pixel of the
// image, and in one pixel of the raster.
func TestArea(t *testing.T) {
	random.Rounds(t, 40, 2000, func(t *testing.T, r *rand.Rand) {
		o := raster.Options{Height: 1 + r.IntN(9), Width: 1 + r.IntN(9)}
		width, height := o.Width*(1+r.IntN(3)), o.Height*(1+r.IntN(3))
		if r.IntN(2) == 0 { // any size; the crop is compared by its definition
			width, height = 1+r.IntN(20), 1+r.IntN(20)
		}
		img := noise(r, width, height)
		got := decode(t, pngOf(t, img), o)
		part := largest(width, height, o)
		want := make([]byte, 0, len(got))
		for y := range o.Height {
			for x := range o.Width {
				var sums [3]int
				for i := range part.Dy() {
					for k := range part.Dx() {
						// Cell (k, i) of the pixel: part.Dx() × part.Dy() cells cover it, as 1/Width × 1/Height of pixels of the image.
						px := part.Min.X + (x*part.Dx()+k)/o.Width
						py := part.Min.Y + (y*part.Dy()+i)/o.Height
						c := img.NRGBAAt(px, py)
						sums[0], sums[1], sums[2] = sums[0]+int(c.R), sums[1]+int(c.G), sums[2]+int(c.B)
					}
				}
				n := part.Dx() * part.Dy()
				for _, sum := range sums {
					want = append(want, byte((2*sum+n)/(2*n)))
				}
			}
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%d × %d to %+v:\ngot  %v\nwant %v", width, height, o, got, want)
		}
	})
}

// largest is the crop, found by trying: the width and height nearest to the proportions.
func largest(width, height int, o raster.Options) image.Rectangle {
	near := func(most, of, numerator, denominator int) int {
		best := 1
		for n := 1; n <= most; n++ { // |n - of × numerator/denominator|, halves up
			if abs(2*n*denominator-2*of*numerator) <= abs(2*best*denominator-2*of*numerator) {
				best = n
			}
		}
		return best
	}
	w, h := width, height
	if width*o.Height > height*o.Width {
		w = near(width, height, o.Width, o.Height)
	} else {
		h = near(height, width, o.Height, o.Width)
	}
	return image.Rect(0, 0, w, h).Add(image.Pt((width-w)/2, (height-h)/2))
}

func abs(n int) int { return max(n, -n) }

// TestColors: every kind of PNG becomes its colors, without its transparency.
func TestColors(t *testing.T) {
	c := color.NRGBA{200, 100, 50, 128}
	wide := color.NRGBA64{0xC8FF, 0x64FF, 0x32FF, 0x80FF}
	set := func(img interface {
		image.Image
		Set(x, y int, c color.Color)
	}, c color.Color,
	) image.Image {
		img.Set(0, 0, c)
		return img
	}
	r := image.Rect(0, 0, 1, 1)
	rgb := []byte{200, 100, 50}
	for name, one := range map[string]struct {
		img  image.Image
		want []byte
	}{
		"NRGBA":    {set(image.NewNRGBA(r), c), rgb},
		"RGBA":     {set(image.NewRGBA(r), color.RGBA{200, 100, 50, 255}), rgb},
		"NRGBA64":  {set(image.NewNRGBA64(r), wide), rgb},
		"RGBA64":   {set(image.NewRGBA64(r), color.RGBA64{0xC8FF, 0x64FF, 0x32FF, 0xFFFF}), rgb},
		"Gray":     {set(image.NewGray(r), color.Gray{77}), []byte{77, 77, 77}},
		"Gray16":   {set(image.NewGray16(r), color.Gray16{0x4DFF}), []byte{77, 77, 77}},
		"Paletted": {set(image.NewPaletted(r, color.Palette{color.NRGBA{1, 2, 3, 0}, c}), c), rgb},
		"clear":    {set(image.NewPaletted(r, color.Palette{color.NRGBA{1, 2, 3, 0}, c}), color.NRGBA{1, 2, 3, 0}), []byte{1, 2, 3}},
	} {
		encoded := pngOf(t, one.img)
		if got := decode(t, encoded, raster.Options{Height: 1, Width: 1}); !bytes.Equal(got, one.want) {
			t.Errorf("%s: %v instead of %v", name, got, one.want)
		}
		luma := byte((19595*int(one.want[0]) + 38470*int(one.want[1]) + 7471*int(one.want[2]) + 32768) / 65536)
		if got := decode(t, encoded, raster.Options{Height: 1, Width: 1, Gray: true}); got[0] != luma {
			t.Errorf("%s: gray %d instead of %d", name, got[0], luma)
		}
	}
}

// TestFlip: a flip exchanges left and right, for about half of the keys.
func TestFlip(t *testing.T) {
	img := image.NewGray(image.Rect(0, 0, 3, 2))
	copy(img.Pix, []byte{1, 2, 3, 4, 5, 6})
	rows := map[string]int{}
	for i := range uint32(100) {
		dst := make([]byte, 6)
		if err := raster.Decode(dst, pngOf(t, img), raster.Options{Height: 2, Width: 3, Gray: true, RandomFlip: true}, [2]uint32{0, i}); err != nil {
			t.Fatal(err)
		}
		rows[string(dst)]++
	}
	if a, b := rows["\x01\x02\x03\x04\x05\x06"], rows["\x03\x02\x01\x06\x05\x04"]; a+b != 100 || a < 30 || b < 30 {
		t.Errorf("%v", rows)
	}
}

// TestFrozen compares the pixels of a JPEG file with what the name of the decoder stands for. If a
// release of Go changes them, the decoder needs another name, because fingerprints contain it. With the
// tag libjpeg, all tests decode with libjpeg-turbo.
func TestFrozen(t *testing.T) {
	encoded := read(t, "frozen.jpg")
	for _, c := range []struct {
		o    raster.Options
		want map[string]string
	}{
		{raster.Options{Height: 60, Width: 83}, map[string]string{"go1.26": "db18cbf124f22505", "libjpeg-turbo.1": "f771e68a5707cb0c"}},
		{raster.Options{Height: 17, Width: 23}, map[string]string{"go1.26": "426c70ed4077b2d3", "libjpeg-turbo.1": "639d533b0e6d091d"}},
		{raster.Options{Height: 100, Width: 70, Gray: true}, map[string]string{"go1.26": "d9ea25eeb62bab5c", "libjpeg-turbo.1": "a9b1bf394a6b12f6"}},
	} {
		sum := sha256.Sum256(decode(t, encoded, c.o))
		if got, want := hex.EncodeToString(sum[:8]), c.want[raster.JPEGDecoder()]; got != want {
			t.Errorf("%s of %+v has the hash %s, want %s", raster.JPEGDecoder(), c.o, got, want)
		}
		if !strings.HasPrefix(c.o.String(), raster.JPEGDecoder()+" ") {
			t.Errorf("%s does not name its decoder %s", c.o, raster.JPEGDecoder())
		}
	}
}

// TestWebP compares the pixels of WebP files with hashes of what libwebp 1.6 decodes. The lossy one has
// transparency, which is dropped.
func TestWebP(t *testing.T) {
	for name, c := range map[string]struct {
		o    raster.Options
		want string
	}{
		"lossy.webp":    {raster.Options{Height: 60, Width: 83}, "a8be060bf1f133e2"},
		"lossless.webp": {raster.Options{Height: 20, Width: 31}, "604978ec7feaf3a2"},
	} {
		sum := sha256.Sum256(decode(t, read(t, name), c.o))
		if got := hex.EncodeToString(sum[:8]); got != c.want {
			t.Errorf("%s has the hash %s, want %s", name, got, c.want)
		}
	}
}

// read returns a file of testdata.
func read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// header returns a PNG file without pixels.
func header(width, height uint32) []byte {
	chunk := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte("IHDR"), width), height)
	chunk = append(chunk, 8, 2, 0, 0, 0)
	file := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), chunk...)
	return binary.BigEndian.AppendUint32(file, crc32.ChecksumIEEE(chunk))
}

// TestRefused: what is no image, or is too large or broken, has an error with a code.
func TestRefused(t *testing.T) {
	whole := pngOf(t, noise(rand.New(rand.NewPCG(1, 2)), 9, 9))
	photo, lossy := read(t, "frozen.jpg"), read(t, "lossy.webp")
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	for _, c := range []struct {
		data string
		code status.Code
		want string
	}{
		{"", status.InvalidArgument, "raster: has no bytes; store another image, or leave out the record"},
		{"hello, world", status.InvalidArgument, `raster: is no image: it begins with "hello, w"; give the bytes of JPEG, PNG or WebP files`},
		{"\xff\xd8", status.InvalidArgument, `raster: is no image: it begins with "\xff\xd8"`},
		{"GIF89a", status.Unsupported, "raster: has the format GIF; only JPEG, PNG and WebP with one image are decoded; convert it, for example with Pillow"},
		{"RIFF\x00\x00\x00\x00WEBPVP8 ", status.DataLoss, "raster: cannot be decoded: "},
		{string(lossy[:len(lossy)-20]), status.DataLoss, "raster: cannot be decoded: unexpected EOF"},
		{"RIFF\x1a\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x02\x00\x00\x00", status.Unsupported, "raster: has the format animated WebP; only JPEG, PNG"},
		{"RIFF\x14\x00\x00\x00WEBPVP8L\x08\x00\x00\x00\x2f\xff\xff\xff\x0f\x88\x88\x08", status.Unsupported, "raster: has 16384 x 16384 pixels, above"},
		{"BM", status.Unsupported, "raster: has the format BMP"},
		{"II*\x00", status.Unsupported, "raster: has the format TIFF"},
		{"MM\x00*", status.Unsupported, "raster: has the format TIFF"},
		{"\x00\x00\x00\x20ftypavif", status.Unsupported, "raster: has the format AVIF"},
		{"\x00\x00\x00\x20ftypheic", status.Unsupported, "raster: has the format HEIF"},
		{"\xff\x0a", status.Unsupported, "raster: has the format JPEG XL"},
		{"\x00\x00\x00\x0cjP  ", status.Unsupported, "raster: has the format JPEG 2000"},
		{"\xff\xd8\xff", status.DataLoss, "raster: cannot be decoded: "},
		{string(photo[:len(photo)/2]), status.DataLoss, "raster: cannot be decoded: " + map[string]string{"go1.26": "invalid JPEG format: short Huffman data", "libjpeg-turbo.1": "libjpeg: Premature end of JPEG file; store"}[raster.JPEGDecoder()]},
		{string(whole[:len(whole)-20]), status.DataLoss, "raster: cannot be decoded: png: invalid format: unexpected EOF"},
		{string(flipped), status.DataLoss, "raster: cannot be decoded: "},
		{string(header(0, 5)), status.DataLoss, "raster: cannot be decoded: png: invalid format: non-positive dimension"},
		{string(header(10_001, 10_000)), status.Unsupported, "raster: has 10000 x 10001 pixels, above the limit of 100000000 pixels, and 65535 in a row or a column; store a smaller image"},
		{string(header(1, 65_536)), status.Unsupported, "raster: has 65536 x 1 pixels, above"},
		{string(header(1<<31-1, 1<<31-1)), status.DataLoss, "raster: cannot be decoded: png: unsupported feature: dimension overflow"},
		{string(header(10_000, 10_000)), status.DataLoss, "raster: cannot be decoded: unexpected EOF"},
	} {
		err := raster.Decode(make([]byte, 3), []byte(c.data), raster.Options{Height: 1, Width: 1}, [2]uint32{})
		if err == nil || err.Code != c.code || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%.20q: got  %v (%v)\nwant %s", c.data, err, status.CodeOf(err), c.want)
		}
	}
	for _, o := range []raster.Options{{}, {Height: 1}, {Height: -1, Width: 1}, {Height: 1, Width: 65_536}} {
		if err := o.Check(); status.CodeOf(err) != status.InvalidArgument {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// FuzzDecode checks that no bytes make the program panic.
func FuzzDecode(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	gray := image.NewGray(image.Rect(0, 0, 20, 20))
	f.Add(pngOf(f, gray))
	f.Add(pngOf(f, noise(r, 20, 9)))
	f.Add(read(f, "lossy.webp"))
	f.Add(read(f, "lossless.webp"))
	f.Add(pngOf(f, image.NewPaletted(gray.Rect, color.Palette{color.Black, color.White})))
	for _, img := range []image.Image{gray, noise(r, 30, 20)} {
		var b bytes.Buffer
		if err := jpeg.Encode(&b, img, nil); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, data []byte) { checkBytes(data) })
}

// TestDamaged damages images.
func TestDamaged(t *testing.T) {
	small := pngOf(t, noise(rand.New(rand.NewPCG(1, 2)), 20, 9))
	files := [][]byte{small, read(t, "frozen.jpg"), read(t, "lossy.webp"), read(t, "lossless.webp")}
	random.Rounds(t, 400, 40_000, func(_ *testing.T, r *rand.Rand) {
		checkBytes(random.Damage(r, random.One(r, files...)))
	})
}

// checkBytes decodes bytes, unless the image is large.
func checkBytes(data []byte) {
	if c, _, err := image.DecodeConfig(bytes.NewReader(data)); err == nil && c.Width*c.Height > 1<<20 {
		return // takes too long
	}
	for _, o := range []raster.Options{{Height: 3, Width: 2}, {Height: 40, Width: 50, Gray: true}} {
		_ = raster.Decode(make([]byte, o.Height*o.Width*o.Channels()), data, o, [2]uint32{})
	}
}
