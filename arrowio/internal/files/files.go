// Package files finds the files of a dataset. A caller names files, globs and directories, and
// [Find] returns one list of files in the order of their records.
//
// A directory may hold more than one list of files, or a list that only a file of metadata
// knows. Find knows these layouts: the manifest of a conversion, Hugging Face's save_to_disk,
// downloads and caches, splits and shards in the names of files, and Hive's partitions. If a
// name or a directory has two readings, or if files with data would be left out, the error
// lists what there is, and its hint is a name to open instead. Files with hidden names, such
// as _SUCCESS, and files without the suffix of a format are left out.
//
// The package reads names, directories and small files of metadata. It lists a directory once and
// passes a glob to the opener as a whole. It opens no file of data, except if no file of a
// directory has a suffix. Then it asks [Options.Recognize].
package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/manifest"
	"github.com/meshfeed/meshfeed/core/status"
)

// maxFiles bounds a dataset; all its files stay open.
const maxFiles = 1 << 20

// File is a file that a pattern stands for.
type File struct {
	Path      string     // its name for the opener
	Base      string     // the last part of Path
	Entry     blob.Entry // what the search knows about it, for the opener
	Partition Partition  // what the directories around it say about its records

	listed  *manifest.File // in the manifest of a conversion; nil without a manifest
	saved   string         // the directory of save_to_disk that lists the file, or ""
	records int64          // in that list; 0 if it does not say

	missing string // the hint if the file does not exist; empty for the opener's hint
	foreign string // the hint if the file has no known format; empty for the hint of the reader

	number  int // number of the pattern, from 1
	pattern string
}

// String returns the name of the file and the pattern that it comes from.
func (f *File) String() string {
	if f.Path == f.pattern {
		return fmt.Sprintf("%s (path %d)", f.Path, f.number)
	}
	return fmt.Sprintf("%s (path %d, %q)", f.Path, f.number, f.pattern)
}

// Advise replaces the hint of an error about opening the file if the file is missing or has an
// unknown format, and if the search knows why.
func (f *File) Advise(err error) error {
	e, ok := errors.AsType[*status.Error](err)
	if !ok {
		return err
	}
	_, foreign := e.Attr("format").(string)
	switch {
	case f.foreign != "" && foreign:
		return e.WithHint("%s", f.foreign)
	case f.missing != "" && e.Code == status.NotFound:
		return e.WithHint("%s", f.missing)
	}
	return err
}

// CheckRecords returns an error if the list of files in the directory gives the file another
// number of records than it has.
func (f *File) CheckRecords(have int64) error {
	switch {
	case f.listed != nil && f.listed.Records != have:
		return status.Errorf(status.DataLoss, "arrowio", "%s: the file has %d records, but %s says %d", f.Path, have, manifest.Name, f.listed.Records).
			WithHint("copy the directory again, or convert the data again").With("path", f.Path)
	case f.records > 0 && f.records != have:
		return oldDirectory(f.saved, aPart)
	}
	return nil
}

// Options select files. Opener and Recognize are required.
type Options struct {
	Opener blob.Opener
	Split  string // to choose in directories; empty for none
	Images bool   // each pattern is a folder of images, which opens as one file

	// Recognize reports whether a file has a known format, by its first bytes.
	Recognize func(ctx context.Context, b blob.Blob) bool
}

// Find returns the files of all patterns. A pattern is the name of a file or directory, or a
// glob; x-{00..12}.tar stands for 13 patterns. The order is the order of the patterns. In a pattern, files are sorted by base name,
// then path, unless a list of files or partitions give another order. The error is NotFound if
// a pattern has no file.
func Find(ctx context.Context, patterns []string, o Options) ([]File, error) {
	if len(patterns) == 0 {
		return nil, status.New(status.InvalidArgument, "arrowio", "no files were named").
			WithHint("name files, globs or directories")
	}
	f := finder{o, ctx, &found{dirs: map[string]listing{}, blobs: map[string]blob.Entry{}}}
	var all []File
	for i, p := range patterns {
		if p == "" {
			return nil, status.Errorf(status.InvalidArgument, "arrowio", "path %d of %d is empty", i+1, len(patterns)).
				WithHint("name files, globs or directories")
		}
		list, err := f.one(p)
		if err != nil {
			return nil, err
		}
		for k := range list {
			list[k].number, list[k].pattern = i+1, p
			_, list[k].Base = f.Opener.Split(list[k].Path)
			list[k].Entry = f.entry(list[k].Path)
		}
		if all = append(all, list...); len(all) > maxFiles {
			return nil, tooMany()
		}
	}
	return all, nil
}

func tooMany() error {
	return status.Errorf(status.ResourceExhausted, "arrowio", "more than %d files", maxFiles)
}

// finder finds the files of patterns.
type finder struct {
	Options
	ctx   context.Context
	found *found
}

// one returns the files of one pattern. The name of an existing file or
// directory is not a glob, even if it looks like one.
func (f finder) one(pattern string) ([]File, error) {
	if f.Images {
		return []File{{Path: pattern}}, nil
	}
	e, err := f.Opener.Stat(f.ctx, pattern)
	if err == nil {
		f.found.add(e)
	}
	switch {
	case err == nil && e.Dir:
		return f.directory(pattern)
	case f.Split != "" && (err == nil || strings.ContainsAny(pattern, meta)):
		return nil, status.Errorf(status.InvalidArgument, "arrowio", "%s: a split is chosen in a directory, and this is not a directory", pattern).
			WithHint("leave the split %q out, or open the directory", f.Split).With("path", pattern)
	case err == nil:
		return []File{{Path: pattern}}, nil
	case status.CodeOf(err) == status.Unsupported:
		return nil, err
	case numbers.MatchString(pattern):
		return f.numbered(pattern)
	case !strings.ContainsAny(pattern, meta):
		return nil, f.online(pattern, err)
	case strings.Contains(pattern, "**"):
		return nil, status.Errorf(status.InvalidArgument, "arrowio", "the glob %q has **, which would be read as *", pattern).
			WithHint("write one * for each level, as in %s", strings.ReplaceAll(pattern, "**", "*")).With("path", pattern)
	}
	return f.glob(pattern)
}

// sorted returns files by base name, then path, so that the order does not depend on the
// directories. The hint is for files without a known format.
func (f finder) sorted(paths []string, hint string) []File {
	list := make([]File, len(paths))
	for i, p := range paths {
		_, base := f.Opener.Split(p)
		list[i] = File{Path: p, Base: base, foreign: hint}
	}
	slices.SortFunc(list, func(a, b File) int {
		return cmp.Or(cmp.Compare(a.Base, b.Base), cmp.Compare(a.Path, b.Path))
	})
	return list
}

// isInside reports whether a name in a file of metadata stays in the directory of that file.
func isInside(name string) bool { return name != "" && fs.ValidPath(path.Clean(name)) }

// noFile returns an error of code NotFound that wraps fs.ErrNotExist, as in the error for a
// missing file.
func noFile(format string, args ...any) *status.Error {
	e := status.Errorf(status.NotFound, "arrowio", format, args...)
	e.Err = fs.ErrNotExist
	return e
}
