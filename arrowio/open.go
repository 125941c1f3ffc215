package arrowio

import (
	"context"
	"errors"
	"slices"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/files"
	"github.com/meshfeed/meshfeed/arrowio/internal/format/flat"
	"github.com/meshfeed/meshfeed/arrowio/internal/parts"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/arrowio/internal/units"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/status"
)

// Options select how files are opened. The zero value suits most programs.
type Options struct {
	// IO selects how rows are read: "map" gathers from a mapping,
	// "read" reads them, "auto" (or "") maps local files that fit in free
	// memory and reads the others. Mapped files that fit in free memory are
	// read into it in the background. From larger files, each step reads only
	// its rows.
	IO string

	// Shapes holds the row shape of fields that are stored as lists of
	// variable length, or in fewer dimensions than they have. For example, a
	// list of 3072 values may be a row of shape 32, 32, 3. Without it, the shape of lists
	// comes from the metadata that Hugging Face's datasets library writes, or
	// from the first record. Binary values may hold rows of a shape too: bytes, or
	// elements of the type in Types, little-endian in C order.
	Shapes map[string][]int

	// Types holds the type of the elements that binary values hold, for fields in Shapes.
	// Without it, they are bytes.
	Types map[string]dtype.Type

	// Duplicates selects what to do if a file is found twice: through several
	// patterns, a link or a second name, or in two formats, such as a.arrow and
	// a.parquet. "allow" takes its records once for each time that it is found;
	// "refuse" (or "") returns an error.
	Duplicates string

	// FaultHandler replaces debug.SetPanicOnFault for mapped files. A library
	// needs it if the program around it may install signal handlers.
	FaultHandler FaultHandler

	// Split chooses one split of a directory that Hugging Face's libraries wrote, such
	// as "train", or with files that are named as theirs: train-00000-of-00002.parquet.
	Split string

	// Cache selects where the decoded units of Parquet and of compressed files are kept.
	// "memory" keeps up to 256 MiB. Any other text is a folder on disk, which is made if
	// it does not exist. Without it, opening fails. "auto" (or "") is the folder
	// meshfeed/units in the user's cache directory, if the fields of a gatherer take more
	// than 256 MiB decoded, or if the files are far away. If that folder cannot be used, Cache
	// of [Dataset.Facts] says why.
	Cache string

	// CacheHome replaces the user's cache directory (os.UserCacheDir). The folder of
	// "auto" is in it.
	CacheHome string

	// CacheBytes bounds all files in the folder together. If it is 0, a quarter of what
	// is free on its disk, or used by the folder, is the bound.
	CacheBytes int64

	// Columns are the names of the columns that become fields, in this order. They are chosen
	// before the files are compared, so that other columns may differ. Nil stands for all.
	Columns []string

	// DType is the type of the elements of raw files, which hold nothing else, such as the
	// train.bin of nanoGPT. Each element is a record of the field "tokens". Without it, files say
	// themselves what they hold.
	DType dtype.Type

	// Skip is the number of bytes before the first element of each raw file.
	Skip int64

	// Images opens each path as a folder with a folder of images for each class, as ImageFolder of
	// torchvision does: the fields are "image" (bytes), "label" (with the names of the classes) and "path".
	Images bool

	// Opener finds and opens the files. Nil stands for the files of this machine, and for the
	// openers of URLs: see [Register].
	Opener blob.Opener

	// Commits are the commits of names such as "hf://datasets/ORG/NAME", for which the hub is then not
	// asked. They are what [Dataset.Commits] returned in another process.
	Commits map[string]string

	// Getenv replaces os.Getenv, for a library in a program that changes its environment.
	Getenv func(name string) string
}

// FaultHandler handles reads of a mapping after its file was truncated: they return
// zeros instead of raising a signal, and the gather fails.
type FaultHandler = resident.FaultHandler

// Open opens files of Arrow IPC, Parquet, JSON Lines, TFRecord, NumPy (.npy) or WebDataset (.tar) as
// one dataset: paths, globs and directories, also in a bucket, or addresses of web servers:
//
//	arrowio.Open("s3://bucket/train-*.parquet")
//	arrowio.Open("https://host/train-{000..127}.parquet")
//
// The error is NotFound if no file exists, DataLoss for damage, Unsupported for other formats, and
// Incompatible if schemas disagree.
func Open(pattern string, more ...string) (*Dataset, error) {
	return OpenFiles(context.Background(), append([]string{pattern}, more...), Options{})
}

// OpenFiles opens files as one dataset: see [Open]. If ctx
// ends before it returns, the error has the code of ctx.
func OpenFiles(ctx context.Context, patterns []string, o Options) (*Dataset, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	var err error
	if o.Opener, patterns, err = o.route(ctx, patterns); err != nil {
		return nil, err
	}
	hints := o.Opener.Hints()
	if err := hints.Check(); err != nil {
		return nil, err
	}
	found, err := files.Find(ctx, patterns, files.Options{Opener: o.Opener, Split: o.Split, Images: o.Images, Recognize: recognized})
	if err != nil {
		return nil, err
	}
	opened, reads := make([]*units.File, len(found)), resident.NewReads(hints)
	x := indexer{parts.NewMade(o.kept()), o.Columns, hints.Fetches()}
	err = reads.Each(len(found), func(i int) (err error) {
		opened[i], err = openFile(ctx, &found[i], &o, x, reads)
		return err
	})
	var d *Dataset
	if err == nil && o.Duplicates != "allow" {
		err = files.CheckDuplicates(found, func(i int) string { return opened[i].Content.Identity() })
	}
	if err == nil {
		d, err = newDataset(ctx, opened, reads, o)
	}
	if err != nil {
		_ = closeFiles(opened)
		return nil, err
	}
	return d, nil
}

// check rejects unknown values.
func (o Options) check() error {
	if !slices.Contains([]string{"", "auto", "map", "read"}, o.IO) {
		return status.Errorf(status.InvalidArgument, "arrowio", "io %q is not a way to read files", o.IO).
			WithHint(`use "auto", "map" or "read"`)
	}
	if !slices.Contains([]string{"", "refuse", "allow"}, o.Duplicates) {
		return status.Errorf(status.InvalidArgument, "arrowio", "duplicates %q is not a way to treat files that come twice", o.Duplicates).
			WithHint(`use "refuse" or "allow"`)
	}
	if o.Columns != nil && len(o.Columns) == 0 {
		return status.New(status.InvalidArgument, "arrowio", "no columns are chosen").WithHint("name at least one, or choose nothing for all")
	}
	for i, name := range o.Columns {
		if slices.Contains(o.Columns[:i], name) {
			return status.Errorf(status.InvalidArgument, "arrowio", "the column %q is named twice", name).WithHint("name each column once").With("field", name)
		}
	}
	if o.CacheBytes < 0 {
		return status.Errorf(status.InvalidArgument, "arrowio", "the cache cannot have %d bytes", o.CacheBytes)
	}
	if o.Images && (o.Split != "" || o.DType != dtype.Invalid || o.Skip != 0) {
		return status.New(status.InvalidArgument, "arrowio", "a folder of images has no splits and no raw elements").
			WithHint("leave split, dtype and skip out, and open the folder of the split, such as imagenet/train")
	}
	return o.raw().Check()
}

func (o Options) raw() flat.Raw { return flat.Raw{Type: o.DType, Skip: o.Skip} }

func closeFiles(files []*units.File) (err error) {
	for _, f := range files {
		if f != nil {
			err = errors.Join(err, f.Content.Close())
		}
	}
	return err
}
