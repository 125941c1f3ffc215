package view_test

import (
	"bytes"
	"context"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/source/sourcetest"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/core/view"
	"github.com/meshfeed/meshfeed/core/view/raster"
)

// encoded returns an image of 3 × 2 equal gray pixels, and the pixel.
func encoded(t testing.TB, gray byte) (file []byte, pixel byte) {
	t.Helper()
	img := image.NewGray(image.Rect(0, 0, 3, 2))
	for i := range img.Pix {
		img.Pix[i] = gray
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), gray
}

// photos returns a source of nine records: images, a null, and what is no image as record 8.
func photos(t testing.TB) source.Source {
	t.Helper()
	first, _ := encoded(t, 7)
	second, _ := encoded(t, 9)
	return must(view.Constants(must(view.Slice(columns(), 0, 9)), []int64{3, 1, 4, 1},
		view.Constant{Field: source.Field{Name: "photo", Type: dtype.Uint8, Ragged: 1, Logical: "binary"}, Rows: [][]byte{first, nil, second, []byte("none")}}))
}

// TestDecodeImage runs the suite over images and nulls, and compares a box of the images.
func TestDecodeImage(t *testing.T) {
	random := raster.Options{Height: 2, Width: 4, RandomCrop: true, RandomFlip: true}
	open := func(t *testing.T, o raster.Options) source.Source {
		return must(view.DecodeImage(must(view.Slice(photos(t), 0, 8)), "photo", o))
	}
	sourcetest.Run(t, func(t *testing.T) source.Source { return open(t, raster.Options{Height: 2, Width: 4}) })
	sourcetest.Run(t, func(t *testing.T) source.Source { return open(t, random) })
	v := must(view.DecodeImage(photos(t), "photo", raster.Options{Height: 2, Width: 4}))
	number, f, _ := v.Schema().Field("photo")
	if f.Ragged != 0 || f.Logical != "" || !f.Nullable || len(f.Shape) != 3 {
		t.Errorf("%+v", f)
	}
	g, err := v.Gatherer([]source.Part{{Field: number, Boxes: [][][2]int{{{1, 2}, {1, 3}, {0, 1}}}, Fill: 1}})
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]byte, 4*2)
	var times source.Times
	if err := g.Gather(source.WithTimes(t.Context(), &times), source.Draw{}, []int64{4, 3, 0, -1}, []source.Job{{Rows: [2]int{0, 4}, Dst: dst}}); err != nil {
		t.Fatal(err)
	}
	if w := times.Take(); w.Map <= 0 || w.Decode != 0 {
		t.Errorf("the waits are %+v", w)
	}
	if want := []byte{9, 9, 1, 1, 7, 7, 0, 0}; !bytes.Equal(dst, want) {
		t.Errorf("got %v, want %v", dst, want)
	}
	if c, err := source.ComponentsOf(t.Context(), v); err != nil || c.Label != "decoding of images, JPEG by go1.26" {
		t.Errorf("errors of processes that disagree call the view %q (%v)", c.Label, err)
	}
	if _, err := source.VersionOf(open(t, random)); status.CodeOf(err) != status.Unsupported {
		t.Errorf("images that depend on the draw can be kept: %v", err)
	}
	fingerprints := map[source.Fingerprint]bool{fingerprint(t, photos(t)): true}
	for _, o := range []raster.Options{{Height: 2, Width: 4}, {Height: 4, Width: 2}, {Height: 2, Width: 4, Gray: true}, {Height: 2, Width: 4, RandomCrop: true}, {Height: 2, Width: 4, RandomFlip: true}} {
		fingerprints[fingerprint(t, must(view.DecodeImage(photos(t), "photo", o)))] = true
	}
	if len(fingerprints) != 6 {
		t.Errorf("%d fingerprints of 6 datasets", len(fingerprints))
	}
}

// TestRandomImages: a random crop depends on the seed, the epoch and the record, and on nothing else.
func TestRandomImages(t *testing.T) {
	img := image.NewGray(image.Rect(0, 0, 40, 30))
	for i := range img.Pix {
		img.Pix[i] = byte(i * 7)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	src := must(view.Constants(must(view.Slice(columns(), 0, 9)), []int64{9},
		view.Constant{Field: source.Field{Name: "photo", Type: dtype.Uint8, Ragged: 1, Logical: "binary"}, Rows: [][]byte{b.Bytes()}}))
	v := must(view.DecodeImage(src, "photo", raster.Options{Height: 5, Width: 5, RandomCrop: true}))
	g, err := v.Gatherer([]source.Part{v.Schema().Whole(len(v.Schema().Fields) - 1)})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]source.Draw{}
	for _, draw := range []source.Draw{{}, {Epoch: 1}, {Seed: 1}} {
		var both [2][]byte
		for i, records := range [][]int64{{3, 4}, {4, 3}} {
			both[i] = make([]byte, 2*75)
			if err := g.Gather(t.Context(), draw, records, []source.Job{{Rows: [2]int{0, 2}, Dst: both[i]}}); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(both[0][:75], both[1][75:]) || !bytes.Equal(both[0][75:], both[1][:75]) {
			t.Errorf("%v: rows depend on their places", draw)
		}
		for _, row := range [][]byte{both[0][:75], both[0][75:]} {
			if other, known := seen[string(row)]; known {
				t.Errorf("%v and %v have an image in common", draw, other)
			}
			seen[string(row)] = draw
		}
	}
}

// TestDecodeImageErrors: fields without images are refused, and a broken image names its record. A gather
// that ended decodes nothing.
func TestDecodeImageErrors(t *testing.T) {
	for _, c := range []struct {
		field string
		o     raster.Options
		code  status.Code
		want  string
	}{
		{"none", raster.Options{Height: 1, Width: 1}, status.NotFound, `source: the dataset has no field "none"`},
		{"a", raster.Options{Height: 1, Width: 1}, status.InvalidArgument, `view: field "a" has rows of type int32[3], which hold no image files; give a field whose rows are the bytes of JPEG, PNG or WebP files`},
		{"photo", raster.Options{Height: 1}, status.InvalidArgument, `raster: images cannot have the size 1 x 0; give a height and a width from 1 to 65535, with at most 100000000 pixels`},
		{"photo", raster.Options{Height: 60_000, Width: 60_000}, status.InvalidArgument, `raster: images cannot have the size 60000 x 60000; give`},
	} {
		_, err := view.DecodeImage(photos(t), c.field, c.o)
		if err == nil || status.CodeOf(err) != c.code || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
	v := must(view.DecodeImage(photos(t), "photo", raster.Options{Height: 1, Width: 1}))
	g, err := v.Gatherer([]source.Part{v.Schema().Whole(len(v.Schema().Fields) - 1)})
	if err != nil {
		t.Fatal(err)
	}
	gather := func(ctx context.Context, record int64) error {
		return g.Gather(ctx, source.Draw{}, []int64{record}, []source.Job{{Rows: [2]int{0, 1}, Dst: make([]byte, 3)}})
	}
	const want = `view: field "photo": the image of record 8 is no image: it begins with "none"; give the bytes of JPEG, PNG or WebP files`
	if err := gather(t.Context(), 8); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := gather(ended, 0); status.CodeOf(err) != status.Cancelled {
		t.Errorf("got %v", err)
	}
}
