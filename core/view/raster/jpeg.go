package raster

import "image"

// JPEG is a decoder of JPEG files.
type JPEG struct {
	// Name is in fingerprints. It stands for the bytes of all images, so a change of a byte needs another name.
	Name string

	// Open begins to decode a part of an image that has a size, after its sides shrank to 1/scale, rounded up:
	// scale is 1, 2, 4 or 8. The file stays unchanged until Close.
	Open func(file []byte, size image.Point, scale int, part image.Rectangle) (Lines, error)
}

// Lines are the lines of a part of an image, from the top.
type Lines interface {
	// Next returns the pixels of the next line, four bytes each: red, green, blue and a byte without meaning.
	// They are valid until the next call.
	Next() ([]byte, error)

	// Close ends the decoding. If Next has returned all lines, the error says whether the rest of the file is damaged.
	Close() error
}

// decoderOfJPEG decodes JPEG files; if it has no function, image/jpeg does.
var decoderOfJPEG = JPEG{Name: "go1.26"}

// UseJPEG makes rasters from JPEG files with a decoder in place of Go's. Call it in an init function, because
// fingerprints contain the name of the decoder. Images of four channels stay with Go's decoder.
func UseJPEG(d JPEG) { decoderOfJPEG = d }

// JPEGDecoder returns the name of the decoder of JPEG files.
func JPEGDecoder() string { return decoderOfJPEG.Name }

// shrunk opens a JPEG file at the smallest size at which the part has at least twice the width and the height
// of the raster.
func shrunk(file []byte, size image.Config, o Options, key [2]uint32) (picture, error) {
	part, flip := choose(image.Rect(0, 0, size.Width, size.Height), o, key)
	scale := 8
	for scale > 1 && (part.Dx() < 2*scale*o.Width || part.Dy() < 2*scale*o.Height) {
		scale /= 2
	}
	up := image.Pt(scale-1, scale-1)
	small := image.Rectangle{part.Min.Div(scale), part.Max.Add(up).Div(scale)}
	lines, err := decoderOfJPEG.Open(file, image.Pt(size.Width, size.Height), scale, small)
	return picture{lines, scale, part.Min.Sub(small.Min.Mul(scale)), part.Size(), flip}, err
}
