package view

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/core/view/raster"
)

// DecodeImage returns a view in which the rows of a field are images of one size: uint8, with the
// shape [height, width, channels]. The rows below are the bytes of JPEG, PNG and WebP files. Package raster says
// how they become pixels. A null row stays null.
//
// A random crop or flip depends on the key of the record, sampler.RecordKey, of the draw and the
// number of the record in this view. So it differs from epoch to epoch, and is equal on every mesh.
//
// An image that cannot be decoded is an error of the gather that needs it, or zeros with Options.Zero, as
// in [Mapping]. DecodeImage itself reads no row.
func DecodeImage(src source.Source, field string, o raster.Options) (source.Source, error) {
	if err := source.Given("view", src); err != nil {
		return nil, err
	}
	schema := src.Schema()
	number, err := schema.Find(field)
	if err != nil {
		return nil, err
	}
	f := schema.Fields[number]
	if f.Ragged != 1 || f.Type != dtype.Uint8 || f.IsText() || len(f.Shape) > 0 {
		return nil, status.Errorf(status.InvalidArgument, "view", "field %q has rows of type %s, which hold no image files", field, f.TypeString()).
			WithHint("give a field whose rows are the bytes of JPEG, PNG or WebP files").With("field", field)
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	v := &decodeImage{base: newBase("decoding of images", src), number: number, options: o}
	v.kind += ", JPEG by " + raster.JPEGDecoder() // processes with different decoders get an error that says so
	v.identify, v.records, v.origins = v.hash, src.Len(), allOf(src)
	v.origins[number].compute, v.origins[number].zero = v.decode, o.Zero
	v.schema = source.Schema{Fields: slices.Clone(schema.Fields), Skipped: schema.Skipped}
	to := &v.schema.Fields[number]
	to.Shape, to.Ragged, to.Logical = []int{o.Height, o.Width, o.Channels()}, 0, ""
	return v, nil
}

// decodeImage is a view with a field of images that are decoded.
type decodeImage struct {
	base
	number  int // number of the field
	options raster.Options
}

// hash takes in all that the pixels depend on.
func (v *decodeImage) hash(_ context.Context, below []source.Fingerprint) (source.Fingerprint, error) {
	h := hashOf("decode_image", below...)
	fmt.Fprintf(h, "%d %s\n", v.number, v.options)
	if v.options.Zero {
		fmt.Fprintln(h, "zero")
	}
	return fingerprint(h), nil
}

// Facts implements source.Source.
func (v *decodeImage) Facts() source.Facts {
	f := v.base.Facts()
	f.Slow = true
	if v.options.Random() {
		f.Version = func() (string, error) {
			return "", status.New(status.Unsupported, "view", "random crops and flips differ in every epoch, so these images cannot be kept").
				WithHint("keep the rows before they are decoded, or crop in the center and flip in the step")
		}
	}
	return f
}

// decode decodes the image of a row.
func (v *decodeImage) decode(ctx context.Context, draw source.Draw, m *memory, s *source.Span, rows []source.Span, _ int64) error {
	if rows[0].Null() {
		return nil
	}
	if err := ended(ctx); err != nil {
		return err
	}
	start := time.Now()
	s.Row = m.bytes(v.schema.Fields[v.number].RowBytes())
	err := raster.Decode(s.Row, rows[0].Row, v.options, sampler.RecordKey(draw.Seed, draw.Epoch, s.Record))
	source.TimesOf(ctx).AddMap(time.Since(start))
	if err == nil {
		return nil
	}
	name := v.schema.Fields[v.number].Name
	err.Op, err.Msg = "view", fmt.Sprintf("field %q: the image of record %d %s", name, rows[0].Record, err.Msg)
	return err.With("field", name).With("record", s.Record)
}
