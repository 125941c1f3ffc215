// Package raster turns encoded images into pixels of one size. A row of a field of images is such a
// raster: height × width × channels bytes, from the top left.
//
// # From bytes to pixels
//
// JPEG, PNG and WebP are decoded, cropped, resized, then converted to gray if that is asked for. Every image
// becomes 8-bit RGB first:
//
//	gray             the three channels are equal
//	16-bit           the upper 8 bits of each channel
//	palette          the colors of the palette
//	transparency     is dropped; the colors stay as they are stored
//	CMYK             R = (255 − C) × (255 − K) / 255, and so on
//	animated PNG     the first image; animated WebP is refused
//	EXIF orientation is not applied
//	color profiles   are not applied
//
// Gray is (19595 R + 38470 G + 7471 B + 32768) / 65536, rounded down: the luma of ITU-R BT.601.
//
// # Crop and flip
//
// The crop center.1 is the largest part with the proportions of the raster. If the image is too wide,
// w × H > h × W, the part has the full height h, and the width h × W / H, rounded to the nearest integer,
// halves up, and at least 1. Its left edge is half the rest, rounded down. If the image is too high, width
// and height change places.
//
// The crop random.1 takes 8 to 100 % of the area. Its proportions, width by height, are up to 4/3 times
// wider or higher than the raster. It follows from the key of a record. The number ui of a record, from 0 to
// 1, is the upper 53 bits of permutation.Hash(key, i), divided by 2^53. The area is w × h × (0.08 + 0.92 × u1).
// The proportions are W / H times 1 + (2 × u2 − 1) / 3, or if u2 is below 1/2, divided by
// 1 + (1 − 2 × u2) / 3. If the part with this area is wider or higher than the image, both sides shrink until
// it fits. Both are rounded as above. The left edge is u3 × (w + 1 − its width), and the top edge
// u4 × (h + 1 − its height), rounded down.
//
// A random flip exchanges left and right if u5 is below 1/2.
//
// # Resizing
//
// The method area.1 takes the mean of what a pixel of the raster covers. For a part of w × h pixels, pixel
// (x, y) of W × H covers the rectangle from x × w / W to (x+1) × w / W, and from y × h / H to (y+1) × h / H. Each
// pixel of the part counts by the area of it that the rectangle covers. The mean is rounded to the
// nearest integer, halves up. All sums are integers, so the result is equal on every machine.
//
// The names area.1, center.1, random.1 and the name of the JPEG decoder are in fingerprints, so what they stand
// for is frozen. PNG and lossless WebP have no loss, so their pixels depend on no decoder. The standard of
// lossy WebP leaves open how colors are interpolated: they have the values of libwebp. A program in Go decodes
// WebP with an import of package core/view/raster/webp.
//
// # Decoders of JPEG
//
// Decoders differ in the lowest bits. Without another one, image/jpeg of Go decodes, with the name go1.26, the
// release since which its pixels are as they are. Package libjpeg has a faster decoder, and [UseJPEG] takes any.
// Such a decoder can decode at 1/2, 1/4 or 1/8 of the size. The smallest size is taken at which the part has at
// least twice the width and the height of the raster. Each pixel of the smaller image then stands for 2 × 2,
// 4 × 4 or 8 × 8 equal pixels, and all that is said above stays as it is.
//
// # Data of strangers
//
// An image has at most [MaxPixels] pixels, and at most [MaxSide] in a row or a column. Its header is
// checked before memory is allocated for its pixels. Images of more than 16 million pixels are decoded
// one at a time, so that threads together do not need many times the memory of one. A truncated or
// corrupt image is an error.
package raster

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/meshfeed/meshfeed/core/status"
)

// The limits of images.
const (
	MaxPixels = 100_000_000
	MaxSide   = 65_535
)

const largePixels = 1 << 24

// Options describe a raster. Height and Width are required.
type Options struct {
	Height, Width int
	Gray          bool // one channel in place of three
	RandomCrop    bool // random.1 in place of center.1
	RandomFlip    bool
	Zero          bool // for view.DecodeImage: zeros in place of an error
}

// Channels returns the bytes of a pixel.
func (o Options) Channels() int {
	if o.Gray {
		return 1
	}
	return 3
}

// Random reports whether a raster depends on the key of its record.
func (o Options) Random() bool { return o.RandomCrop || o.RandomFlip }

// String returns all that a raster depends on beside image and key, for fingerprints.
func (o Options) String() string {
	crop := "center.1"
	if o.RandomCrop {
		crop = "random.1"
	}
	return fmt.Sprintf("%s %s %s area.1 %d %d %d", JPEGDecoder(), crop, strconv.FormatBool(o.RandomFlip), o.Height, o.Width, o.Channels())
}

// Check returns an error if there is no raster of this size.
func (o Options) Check() error {
	if min(o.Height, o.Width) < 1 || max(o.Height, o.Width) > MaxSide || o.Height*o.Width > MaxPixels {
		return status.Errorf(status.InvalidArgument, "raster", "images cannot have the size %d x %d", o.Height, o.Width).
			WithHint("give a height and a width from 1 to %d, with at most %d pixels", MaxSide, MaxPixels)
	}
	return nil
}

// large is held while a large image is decoded.
var large sync.Mutex

// Decode writes the raster of an encoded image to dst, which has Height × Width × Channels bytes. key is
// the key of the record. The message of an error says what the image is or has, such as "has no bytes".
func Decode(dst, encoded []byte, o Options, key [2]uint32) *status.Error {
	name, decode, size, err := open(encoded)
	if err != nil {
		return err
	}
	if size.Width*size.Height > largePixels {
		large.Lock()
		defer large.Unlock()
	}
	s := pool.Get().(*scratch)
	defer pool.Put(s)
	p, cause := s.picture(name, decode, encoded, size, o, key)
	if cause == nil {
		cause = s.resize(dst, p, o)
		if damage := p.lines.Close(); cause == nil {
			cause = damage
		}
	}
	if cause != nil {
		return broken(cause)
	}
	return nil
}

// picture is the part of an image that becomes a raster. Each pixel of the lines stands for scale × scale
// pixels of the image, and the part begins at a pixel of the first of these.
type picture struct {
	lines       Lines
	scale       int
	begin, size image.Point
	flip        bool
}

// picture begins to decode an image, of which the header is read.
func (s *scratch) picture(name string, decode decoder, encoded []byte, size image.Config, o Options, key [2]uint32) (picture, error) {
	if name == "JPEG" && decoderOfJPEG.Open != nil && size.ColorModel != color.CMYKModel {
		return shrunk(encoded, size, o, key)
	}
	img, err := decode(bytes.NewReader(encoded))
	if err != nil {
		return picture{}, err
	}
	part, flip := choose(img.Bounds(), o, key)
	return picture{s.linesOf(img, part), 1, image.Point{}, part.Size(), flip}, nil
}

// open finds the decoder of an image, and reads its header.
func open(encoded []byte) (name string, decode decoder, size image.Config, err *status.Error) {
	name, decode, config := formatOf(encoded)
	switch {
	case len(encoded) == 0:
		return name, nil, size, status.New(status.InvalidArgument, "raster", "has no bytes").WithHint(leaveOut)
	case name == "":
		return name, nil, size, status.Errorf(status.InvalidArgument, "raster", "is no image: it begins with %q", encoded[:min(8, len(encoded))]).
			WithHint("give the bytes of JPEG, PNG or WebP files")
	case name == "WebP" && decode == nil:
		return name, nil, size, status.New(status.Unsupported, "raster", "is a WebP file, and the program has no decoder of WebP").
			WithHint("import _ %q", "github.com/meshfeed/meshfeed/core/view/raster/webp")
	case decode == nil:
		return name, nil, size, status.Errorf(status.Unsupported, "raster", "has the format %s", name).
			WithHint("only JPEG, PNG and WebP with one image are decoded; convert it, for example with Pillow")
	}
	size, cause := config(bytes.NewReader(encoded))
	switch {
	case cause != nil:
		return name, nil, size, broken(cause)
	case size.Width < 1 || size.Height < 1:
		return name, nil, size, status.Errorf(status.InvalidArgument, "raster", "has %d x %d pixels", size.Height, size.Width).WithHint(leaveOut)
	case max(size.Width, size.Height) > MaxSide || size.Width*size.Height > MaxPixels:
		return name, nil, size, status.Errorf(status.Unsupported, "raster", "has %d x %d pixels, above the limit of %d pixels, and %d in a row or a column",
			size.Height, size.Width, MaxPixels, MaxSide).WithHint("store a smaller image, or leave out the record")
	}
	return name, decode, size, nil
}

const leaveOut = "store another image, or leave out the record (Go: view.FilterFunc; Python: ds.filter)"

// broken returns the error of an image that cannot be decoded.
func broken(cause error) *status.Error {
	return status.Errorf(status.DataLoss, "raster", "cannot be decoded: %w", cause).WithHint(leaveOut)
}

type decoder = func(r io.Reader) (image.Image, error)

// formatOf returns the name of the format of an image, empty if it is unknown, and its decoder, nil if
// it has none.
func formatOf(encoded []byte) (name string, decode decoder, config func(r io.Reader) (image.Config, error)) {
	start := string(encoded[:min(24, len(encoded))])
	is := func(at int, magic string) bool { return len(start) >= at && strings.HasPrefix(start[at:], magic) }
	switch {
	case is(0, "\xff\xd8\xff"):
		return "JPEG", jpeg.Decode, jpeg.DecodeConfig
	case is(0, "\x89PNG\r\n\x1a\n"):
		return "PNG", png.Decode, png.DecodeConfig
	case is(0, "GIF8"):
		name = "GIF"
	case is(0, "RIFF") && is(8, "WEBP"):
		if animated(start) {
			return "animated WebP", nil, nil
		}
		return "WebP", decoderOfWebP, configOfWebP
	case is(0, "BM"):
		name = "BMP"
	case is(0, "II*\x00"), is(0, "MM\x00*"):
		name = "TIFF"
	case is(4, "ftypavif"):
		name = "AVIF"
	case is(4, "ftyphei"), is(4, "ftypmif1"):
		name = "HEIF"
	case is(0, "\xff\x0a"), is(4, "JXL "):
		name = "JPEG XL"
	case is(4, "jP  "):
		name = "JPEG 2000"
	}
	return name, nil, nil
}
