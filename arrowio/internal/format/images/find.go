package images

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// Suffixes are the suffixes of images, as in ImageFolder of torchvision. Case does not count.
var Suffixes = []string{".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp"}

// maxImages bounds the images of a folder, and the folders in it, because each takes memory.
const maxImages = 1 << 24

const layout = "images=True takes a folder that has a folder for each class, as in train/cat/1.jpg"

// image is a file.
type image struct {
	name    string
	size    int64
	version string // of its entry; identity and its identity if the storage has no versions
}

// identity begins what stands for the version of an image if the storage has no versions.
const identity = "\x00"

// place is a folder in the folder of a class.
type place struct {
	class  int
	name   string // below the folder of all classes
	below  []string
	images []image
}

// find lists the folder, and returns the names of its classes and the places with their images, in order.
// Folders are listed level by level, because each call waits for the storage. No image is opened, unless
// the storage has no versions.
func (f *Folder) find(ctx context.Context) (classes []string, all []place, err error) {
	switch e, err := f.opener.Stat(ctx, f.dir); {
	case err != nil:
		return nil, nil, err
	case !e.Dir:
		return nil, nil, status.Errorf(status.InvalidArgument, "arrowio", "%s: this is a file, and images are taken from a folder", f.dir).
			WithHint("%s", layout).With("path", f.dir)
	}
	top := place{class: -1}
	if err := f.list(ctx, &top); err != nil {
		return nil, nil, err
	}
	classes = top.below
	slices.Sort(classes)
	if len(classes) == 0 {
		return nil, nil, status.Errorf(status.NotFound, "arrowio", "%s: there is no folder of a class in it", f.dir).
			WithHint("%s", layout).With("path", f.dir)
	}
	var level []place
	for i, name := range classes {
		level = append(level, place{class: i, name: name})
	}
	for len(level) > 0 {
		err := guard.Parallel(ctx, "arrowio", len(level), f.opener.Hints().AtOnce, func(i int) error { return f.list(ctx, &level[i]) })
		if err != nil {
			return nil, nil, err
		}
		if all = append(all, level...); len(all) > maxImages {
			return nil, nil, f.tooMany()
		}
		var next []place
		for _, p := range level {
			for _, name := range p.below {
				next = append(next, place{class: p.class, name: p.name + "/" + name})
			}
		}
		level = next
	}
	slices.SortFunc(all, func(a, b place) int { return cmp.Or(a.class-b.class, cmp.Compare(a.name, b.name)) })
	counts, total := make([]int, len(classes)), 0
	for _, p := range all {
		counts[p.class] += len(p.images)
		if total += len(p.images); total > maxImages {
			return nil, nil, f.tooMany()
		}
	}
	if i := slices.Index(counts, 0); i >= 0 {
		return nil, nil, status.Errorf(status.NotFound, "arrowio", "%s: the folder of the class %q has no image (%s)", f.dir, classes[i], strings.Join(Suffixes, ", ")).
			WithHint("remove the folder: the numbers of the classes follow from the folders").With("path", f.dir)
	}
	return classes, all, nil
}

func (f *Folder) tooMany() error {
	return status.Errorf(status.ResourceExhausted, "arrowio", "%s: there are more than %d images or folders", f.dir, maxImages).
		WithHint("write the images into archives of WebDataset").With("path", f.dir)
}

// list lists a folder. It leaves out names that begin with a dot. The top folder has no images.
func (f *Folder) list(ctx context.Context, p *place) error {
	dir := f.dir
	if p.name != "" {
		dir = f.full(p.name)
	}
	entries, err := f.opener.List(ctx, dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(p.name, e.Name)
		switch {
		case strings.HasPrefix(e.Name, "."):
		case !utf8.ValidString(e.Name):
			return status.Errorf(status.Unsupported, "arrowio", "%s: the name %q in it is not UTF-8", f.dir, name).WithHint("rename it").With("path", f.dir)
		case e.Dir:
			p.below = append(p.below, e.Name)
		case p.class >= 0 && slices.Contains(Suffixes, strings.ToLower(path.Ext(e.Name))):
			i, err := f.image(ctx, name, e)
			if err != nil {
				return err
			}
			i.name = e.Name
			p.images = append(p.images, i)
		}
	}
	return nil
}

// full returns the name of what lies below the folder, for the opener.
func (f *Folder) full(below string) string { return f.opener.Join(f.dir, below) }

// image returns what the storage says about an image.
func (f *Folder) image(ctx context.Context, name string, e blob.Entry) (i image, err error) {
	full := f.full(name)
	if e.Version == "" {
		if e, err = f.opener.Stat(ctx, full); err != nil {
			return i, err
		}
	}
	if e.Version != "" {
		return image{size: e.Size, version: e.Version}, nil
	}
	b, err := f.opener.Open(ctx, blob.Entry{Name: full})
	if err != nil {
		return i, err
	}
	return image{size: b.Size(), version: identity + b.Identity()}, b.Close()
}

// open opens an image. The error is DataLoss if it is not the image that was listed.
func (f *Folder) open(ctx context.Context, i int) (blob.Blob, error) {
	e := blob.Entry{Name: f.full(f.name(i)), Version: f.versions[i], Size: f.end(i) - f.start(i)}
	was, unversioned := strings.CutPrefix(e.Version, identity)
	if unversioned {
		e = blob.Entry{Name: e.Name}
	}
	b, err := f.opener.Open(ctx, e)
	switch {
	case status.CodeOf(err) == status.NotFound:
		return nil, f.changed(e.Name, "it is gone")
	case err != nil:
		return nil, err
	case b.Size() != f.end(i)-f.start(i):
		err = f.changed(e.Name, fmt.Sprintf("it has %d bytes, and had %d", b.Size(), f.end(i)-f.start(i)))
	case unversioned && b.Identity() != was:
		err = f.changed(e.Name, "it is another file")
	}
	if err != nil {
		_ = b.Close()
		return nil, err
	}
	return b, nil
}

func (f *Folder) changed(name, why string) error {
	return status.Errorf(status.DataLoss, "arrowio", "%s has changed since the folder was opened: %s", name, why).
		WithHint("do not change images that are open; open the dataset again to read what the folder holds now").With("path", name)
}
