package document

import (
	"context"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/core/view"
	"github.com/meshfeed/meshfeed/core/view/raster"
	"github.com/meshfeed/meshfeed/internal/form"
)

// kinds is the table of views.
var kinds = []Kind{
	{Name: "slice", text: "The records from start to stop, without stop.", members: func() ([]*form.Member, maker) {
		var start, stop int64
		return []*form.Member{
			form.Key("start", integer(&start), "The first record.").Required(),
			form.Key("stop", integer(&stop), "The record after the last one.").Required(),
		}, over(func(src source.Source, _ Values) (source.Source, error) { return view.Slice(src, start, stop) })
	}},
	{Name: "select", text: "Some of the fields.", members: func() ([]*form.Member, maker) {
		var fields []string
		return []*form.Member{
			form.Key("fields", names(&fields), "The fields, in their new order.").Required(),
		}, over(func(src source.Source, _ Values) (source.Source, error) { return view.Select(src, fields...) })
	}},
	{Name: "rename", text: "Other names of fields. Two fields may exchange theirs.", members: func() ([]*form.Member, maker) {
		var to []renaming
		return []*form.Member{
				form.Key("names", renamings(&to), "The new name of each field.").Required(),
			}, over(func(src source.Source, _ Values) (source.Source, error) {
				names := make(map[string]string, len(to))
				for _, r := range to {
					names[r.field] = r.name
				}
				return view.Rename(src, names)
			})
	}},
	{Name: "take", text: "Record indices[k] as record k. The values beside the document are the indices.", Values: Records,
		members: plain(func(src source.Source, v Values) (source.Source, error) { return view.Take(src, v.Records) })},
	{Name: "filter", text: "The records with a set bit. The values beside the document are the bits of all records.", Values: Bits,
		members: plain(filter)},
	{Name: "concat", text: "The records of several datasets, one dataset after the other.", many: true, members: func() ([]*form.Member, maker) {
		return nil, func(_ context.Context, below []source.Source, _ Values) ([]source.Source, error) {
			return only(view.Concat(below...))
		}
	}},
	{Name: "mix", text: "Draws from several datasets with weights.", many: true, members: func() ([]*form.Member, maker) {
		var m view.Mixing
		return []*form.Member{
				form.Key("schedule", stages(&m.Schedule), "The weights, and the draws from which on they hold.").Required(),
				form.Key("shuffle", form.Bool(&m.Shuffle, "true or false"), "Whether each epoch of each dataset is shuffled.").Default("false"),
				form.Key("order", name(&m.Order), "The order of each epoch of each dataset: sequential, shuffle, blocks, blocks:W or blocks:W:B; by default, shuffle says it."),
				form.Key("seed", integer(&m.Seed), "The seed of the draws, and of the shuffles.").Default("0"),
				form.Key("stop", choice(&m.Stop, string(view.StopShortest), string(view.StopLongest)), "When an epoch ends: after the first dataset, or after the last one. By default it has as many draws as all datasets have records."),
				form.Key("length", integer(&m.Records), "The draws of an epoch; 0 for a number that follows from stop.").Default("0"),
				form.Key("source", name(&m.Source), "The name of an added field with the number of the dataset of each row."),
				form.Key("names", names(&m.Names), "The names of the datasets."),
			}, func(_ context.Context, below []source.Source, _ Values) ([]source.Source, error) {
				return only(view.Mix(below, m))
			}
	}},
	{Name: "window", text: "Consecutive records as one, for time series.", Slow: true, members: func() ([]*form.Member, maker) {
		var w view.Windows
		return []*form.Member{
				form.Key("length", integer(&w.Length), "The records of a window.").Required(),
				form.Key("stride", integer(&w.Stride), "The records from the start of a window to the start of the next one.").Default("1"),
				form.Key("within", name(&w.Within), "A field that has one value in each window, such as a patient."),
			}, func(ctx context.Context, below []source.Source, _ Values) ([]source.Source, error) {
				return only(view.Window(ctx, below[0], w))
			}
	}},
	{Name: "split", text: "Several datasets, such as one for training and one for tests. Every record is in one of them.", Slow: true, members: func() ([]*form.Member, maker) {
		var d view.Division
		return []*form.Member{
				form.Key("parts", parts(&d.Parts), "The datasets, with shares that add up to 1.").Required(),
				form.Key("seed", integer(&d.Seed), "The seed of the division.").Default("0"),
				form.Key("within", name(&d.Within), "A field; records with equal values stay together."),
			}, func(ctx context.Context, below []source.Source, _ Values) ([]source.Source, error) {
				return view.Split(ctx, below[0], d)
			}
	}},
	{Name: "stack", text: "Several fields of one type and shape as one field. Its first dimension counts them.", members: func() ([]*form.Member, maker) {
		var list []view.Stacked
		return []*form.Member{
			form.Key("stacks", stacks(&list), "The new fields, which follow the other fields.").Required(),
		}, over(func(src source.Source, _ Values) (source.Source, error) { return view.Stack(src, list...) })
	}},
	{Name: "pad", text: "The rows of a field at one length. The field of their own lengths has the suffix _length.", members: func() ([]*form.Member, maker) {
		var field, side, long string
		var p view.Padding
		return []*form.Member{
				form.Key("field", name(&field), "The field.").Required(),
				form.Key("length", integer(&p.Length), "The elements of each row.").Required(),
				form.Key("value", value(&p.Value), "The elements that are added.").Default("0"),
				form.Key("side", choice(&side, "right", "left"), "Where they are added.").Default(`"right"`),
				form.Key("too_long", choice(&long, "error", "truncate"), "What happens to a longer row.").Default(`"error"`),
			}, over(func(src source.Source, _ Values) (source.Source, error) {
				p.Left, p.Truncate = side == "left", long == "truncate"
				return view.Pad(src, field, p)
			})
	}},
	{Name: "pack", text: "Several lists of one field, such as documents of tokens, in each row.", Slow: true, members: func() ([]*form.Member, maker) {
		var field string
		var p view.Packing
		return []*form.Member{
				form.Key("field", name(&field), "The field.").Required(),
				form.Key("length", integer(&p.Length), "The elements of each row.").Required(),
				form.Key("method", choice(&p.Method, "best_fit", "split"), "Whether documents are fitted into rows, or joined and cut.").Default(`"best_fit"`),
				form.Key("too_long", choice(&p.TooLong, "split", "truncate", "drop", "error"), "What happens to a document that is longer than a row.").Default(`"split"`),
				form.Key("group", integer(&p.Group), "best_fit: the documents that are fitted together; 0 for a choice by their lengths.").Default("0"),
				form.Key("max_documents", integer(&p.MaxDocuments), "best_fit: the most documents in a row; 0 for any number.").Default("0"),
				form.Key("overlap", integer(&p.Overlap), "split: the elements that a row has in common with the next one.").Default("0"),
				form.Key("separator", value(&p.Separator), "An element that ends each document."),
				form.Key("fields", names(&p.Fields), "More fields to pack, with rows of the same lengths."),
				form.Key("labels", name(&p.Labels), "The name of a field with the next element of the same document."),
				form.Key("ignored_label", value(&p.Ignored), "The label of the last element of a document, and of padding.").Default("-100"),
			}, func(ctx context.Context, below []source.Source, _ Values) ([]source.Source, error) {
				return only(view.Pack(ctx, below[0], field, p))
			}
	}},
	{Name: "reshape", text: "The rows of a field in a shape, such as images from bytes.", members: func() ([]*form.Member, maker) {
		var field string
		var s view.Shape
		return []*form.Member{
			form.Key("field", name(&field), "The field.").Required(),
			form.Key("shape", sizes(&s.Dims), "The shape of each row.").Required(),
			form.Key("dtype", elementType(&s.Type), "The type of the elements that bytes hold, if it is not the type of the field."),
		}, over(func(src source.Source, _ Values) (source.Source, error) { return view.Reshape(src, field, s) })
	}},
	{Name: "decode_image", text: "The rows of a field as images of one size, from the bytes of JPEG, PNG and WebP files.", members: func() ([]*form.Member, maker) {
		var field, resize, crop, flip, color, bad string
		var size []int
		return []*form.Member{
				form.Key("field", name(&field), "The field.").Required(),
				form.Key("size", form.With(`"minItems":2,"maxItems":2`, sizes(&size)), "The height and the width.").Required(),
				form.Key("resize", choice(&resize, "area"), "How pixels become larger or smaller: a mean by area.").Default(`"area"`),
				form.Key("crop", choice(&crop, "center", "random"), "The part of each image: the largest one in the center, or one by the key of the record.").Default(`"center"`),
				form.Key("flip", choice(&flip, "none", "random"), "Whether half of the images, by the keys of the records, are mirrored.").Default(`"none"`),
				form.Key("color", choice(&color, "rgb", "gray"), "Three channels, or one.").Default(`"rgb"`),
				form.Key("bad", choice(&bad, "error", "zero"), "An image that cannot be decoded: an error, or zeros.").Default(`"error"`),
			}, over(func(src source.Source, _ Values) (source.Source, error) {
				if len(size) != 2 {
					return nil, status.Errorf(status.InvalidArgument, "view", "the size of images has %d numbers, but needs a height and a width", len(size))
				}
				return view.DecodeImage(src, field, raster.Options{
					Height: size[0], Width: size[1], Gray: color == "gray", RandomCrop: crop == "random", RandomFlip: flip == "random", Zero: bad == "zero",
				})
			})
	}},
	{Name: "map", text: "Fields that a function of the program computes. The function is beside the document.", Values: Function, members: func() ([]*form.Member, maker) {
		var m view.Mapping
		var bad string
		return []*form.Member{
				form.Key("out", returned(&m.Out), "The fields that the function returns. They take the places of fields with their names, or follow.").Required(),
				form.Key("fields", names(&m.Fields), "The fields that the function gets; all by default."),
				form.Key("keys", form.Bool(&m.Keys, "true or false"), "Whether it gets a key for each record, for random choices.").Default("false"),
				form.Key("name", name(&m.Name), "The name of the function, for errors."),
				form.Key("key", name(&m.Key), "The name of what the function does, which changes with it."),
				form.Key("workers", integer(&m.Workers), "The calls that run at a time; 0 for the number of processors.").Default("0"),
				form.Key("bad", choice(&bad, "error", "zero"), "A record that the function fails for: an error, or rows of zeros.").Default(`"error"`),
			}, over(func(src source.Source, v Values) (source.Source, error) {
				m.Func, m.Zero = v.Func, bad == "zero"
				return view.Map(src, m)
			})
	}},
	{Name: "cache", text: "The same records. Their rows are computed once and kept.", Slow: true, members: func() ([]*form.Member, maker) {
		folder, bytes := "auto", int64(0)
		return []*form.Member{
				form.Key("folder", name(&folder), "A folder, \"memory\", or \"auto\" for the folder of the user.").Default(`"auto"`),
				form.Key("cache_bytes", integer(&bytes), "The most bytes of all files in the folder; 0 for a quarter of what is free.").Default("0"),
			}, func(ctx context.Context, below []source.Source, v Values) ([]source.Source, error) {
				return only(v.Cache(ctx, below[0], folder, bytes))
			}
	}},
}

// over makes one view of one dataset.
func over(make func(src source.Source, values Values) (source.Source, error)) maker {
	return func(_ context.Context, below []source.Source, values Values) ([]source.Source, error) {
		return only(make(below[0], values))
	}
}

// plain is for documents without members.
func plain(make func(src source.Source, values Values) (source.Source, error)) func() ([]*form.Member, maker) {
	return func() ([]*form.Member, maker) { return nil, over(make) }
}

func only(v source.Source, err error) ([]source.Source, error) {
	return []source.Source{v}, err
}

func filter(src source.Source, v Values) (source.Source, error) {
	if v.Count != src.Len() {
		return nil, status.Errorf(status.InvalidArgument, "view", "the filter is for %d records, but the dataset has %d", v.Count, src.Len()).
			WithHint("give one value for each record of this dataset")
	}
	return view.FilterFunc(src, func(i int64) bool { return v.Bits[i/8]>>(i%8)&1 != 0 })
}
