package files

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/jsontext"
)

// maxJSON bounds the bytes that are read of state.json and dataset_dict.json.
const maxJSON = 16 << 20

// stateFile is the file where save_to_disk lists the files of a dataset.
const stateFile = "state.json"

// huggingFace returns the files of a directory that libraries of Hugging Face wrote, or a
// program that names files like them. The list is nil for any other directory.
func (f finder) huggingFace(dir string, entries []blob.Entry) ([]File, error) {
	for _, find := range []func(string, []blob.Entry) ([]File, error){f.dictionary, f.savedToDisk, f.download, f.cached, f.named} {
		if list, err := find(dir, entries); list != nil || err != nil {
			return list, err
		}
	}
	if f.Split != "" {
		return nil, f.noSplit(dir, nil)
	}
	return nil, nil
}

// dictionary returns the files of a split of a DatasetDict that save_to_disk wrote.
func (f finder) dictionary(dir string, entries []blob.Entry) ([]File, error) {
	dict, err := f.readJSON(dir, entries, "dataset_dict.json")
	if err != nil || dict == nil {
		return nil, err
	}
	var names []string
	for split := range dict.Get("splits").Elements() {
		name, _ := split.Text()
		names = append(names, name)
	}
	switch {
	case len(names) == 0:
		return nil, status.Errorf(status.InvalidArgument, "arrowio", "%s: this is a dictionary of datasets without splits", dir).
			WithHint("save one that has some").With("path", dir)
	case f.Split == "" && len(names) > 1:
		return nil, severalSplits(dir, names, "open "+f.join(dir, names[0]))
	case f.Split == "":
		f.Split = names[0]
	}
	if !slices.Contains(names, f.Split) || !isInside(f.Split) {
		return nil, f.noSplit(dir, names)
	}
	return f.whole(f.join(dir, f.Split))
}

// savedToDisk returns the files of a Dataset that save_to_disk wrote, in their order.
func (f finder) savedToDisk(dir string, entries []blob.Entry) ([]File, error) {
	state, err := f.readJSON(dir, entries, stateFile)
	files := state.Get("_data_files")
	if err != nil || files.Kind() != jsontext.List {
		return nil, err
	}
	switch split, _ := state.Get("_split").Text(); {
	case f.Split == "" || f.Split == split:
	case split == "":
		return nil, f.absent(dir).WithHint("it holds one dataset that was saved without a name: leave the split out")
	default:
		return nil, f.noSplit(dir, []string{split})
	}
	if slices.Collect(state.Get("_indices_data_files").Elements()) != nil {
		return nil, oldDirectory(dir, "with an indices mapping")
	}
	list := []File{}
	for file := range files.Elements() {
		name, ok := file.Get("filename").Text()
		if !ok || !isInside(name) {
			return nil, status.Errorf(status.DataLoss, "arrowio", "%s: state.json lists %.100s, which is not a file in the directory", dir, file).
				WithHint("%s", f.insteadOf(dir)).With("path", dir)
		}
		skip, _ := file.Get("skip").Int()
		take, part := file.Get("take").Int()
		if skip != 0 || part && take <= 0 {
			return nil, oldDirectory(dir, aPart)
		}
		list = append(list, File{Path: f.join(dir, name), saved: dir, records: take, missing: f.join(dir, stateFile) + " lists it: copy or download the directory again"})
	}
	if len(list) == 0 {
		return nil, noFile("%s: state.json lists no data files: what was saved had no records", dir).
			WithHint("save a dataset that has some").With("path", dir)
	}
	return list, nil
}

// aPart is how a dataset was saved if its files have other records, too.
const aPart = "as a part of its files"

// oldDirectory returns the error for a directory of datasets 1.5 or older. There, state.json says
// which records of the files belong to the dataset.
func oldDirectory(dir, how string) error {
	return status.Errorf(status.Unsupported, "arrowio", "%s: the dataset was saved %s, which datasets up to 1.5 follows and later releases ignore", dir, how).
		WithHint("load it with such an old release, call flatten_indices(), and save it again").With("path", dir)
}

// download returns the files of a dataset in the cache of huggingface_hub, of the revision
// "main" or of the only one. The files of a revision may lie in a directory "data" in it.
func (f finder) download(dir string, entries []blob.Entry) ([]File, error) {
	if isDir(entries, "snapshots") && isDir(entries, "blobs") {
		snapshots := f.join(dir, "snapshots")
		revisions, err := f.list(snapshots)
		if err != nil {
			return nil, err
		}
		main, err := f.readText(f.join(dir, "refs/main"))
		main = strings.TrimSpace(main)
		switch {
		case err == nil && isDir(revisions, main):
			return f.directory(f.join(snapshots, main))
		case len(revisions) == 1:
			return f.directory(f.join(snapshots, revisions[0].Name))
		}
		return nil, status.Errorf(status.InvalidArgument, "arrowio", "%s: the download has %d revisions, and none of them is \"main\"", dir, len(revisions)).
			WithHint("open one of those in %s", snapshots).With("path", dir)
	}
	data := f.join(dir, "data")
	if len(arrowFiles(entries)) > 0 || !isDir(entries, "data") {
		return nil, nil
	}
	inside, err := f.list(data)
	if err == nil && len(splitsOf(arrowFiles(inside), false)) > 0 {
		return f.directory(data)
	}
	return nil, nil
}

// whole returns the files of a directory of one split.
func (f finder) whole(dir string) ([]File, error) {
	f.Split = ""
	return f.directory(dir)
}

// online returns the error for a path that does not exist, if a split of it is asked for. It may
// be the name of a dataset on Hugging Face's hub.
func (f finder) online(path string, err error) error {
	if missing, ok := errors.AsType[*status.Error](err); f.Split != "" && strings.Count(path, "/") == 1 && isInside(path) && ok && missing.Code == status.NotFound {
		return missing.WithHint("if it is a dataset on the hub, download it: huggingface_hub.snapshot_download(%q, repo_type=\"dataset\") returns its directory", path)
	}
	return err
}

// cached returns the files of a split in the cache of load_dataset. There, other files are
// results of map and filter.
func (f finder) cached(dir string, entries []blob.Entry) ([]File, error) {
	info, err := f.readJSON(dir, entries, "dataset_info.json")
	if err != nil {
		return nil, nil // other programs have files of this name, too
	}
	files := map[string][]string{}
	var names []string
	for name := range info.Get("splits").Members() {
		if list := ofSplit(arrowFiles(entries), name); list != nil {
			names, files[name] = append(names, name), list
		}
	}
	switch {
	case len(names) == 0:
		return nil, nil
	case f.Split == "" && len(names) > 1:
		return nil, severalSplits(dir, names, "")
	case f.Split == "":
		f.Split = names[0]
	case files[f.Split] == nil:
		return nil, f.noSplit(dir, names)
	}
	return f.wholeSplit(dir, files[f.Split])
}

// named returns the files that belong to the split by their names, or the files in a directory
// with its name. If no split is chosen, the files and the directories must not belong to several
// splits.
func (f finder) named(dir string, entries []blob.Entry) ([]File, error) {
	files := f.data(dir, entries)
	if f.Split == "" {
		return nil, f.oneSplit(dir, entries, files)
	}
	chosen := ofSplit(files, f.Split)
	if chosen == nil {
		chosen = slices.DeleteFunc(slices.Clone(files), func(name string) bool { return usualSplit(name) != f.Split })
	}
	if len(chosen) > 0 {
		return f.wholeSplit(dir, chosen)
	}
	if isDir(entries, f.Split) {
		return f.whole(f.join(dir, f.Split))
	}
	return nil, f.noSplit(dir, splitsOf(files, true))
}

// oneSplit returns an error if a directory has several splits, or lacks shards.
func (f finder) oneSplit(dir string, entries []blob.Entry, files []string) error {
	if names := splitsOf(files, false); len(names) > 1 {
		return severalSplits(dir, names, "open "+f.join(dir, "*")+" for all")
	}
	if len(files) > 0 {
		return f.checkShards(dir, files)
	}
	var names []string
	for _, e := range entries {
		if !e.Dir || !slices.Contains(usualSplits, strings.ToLower(e.Name)) {
			continue
		}
		if inside, _ := f.list(f.join(dir, e.Name)); hasData(inside) {
			names = append(names, e.Name)
		}
	}
	if slices.Sort(names); len(names) > 0 {
		return severalSplits(dir, names, "")
	}
	return nil
}

// severalSplits returns the error for a directory with splits if none is chosen. The hint
// names one of them, and the other way if there is one.
func severalSplits(dir string, names []string, other string) error {
	what, example := "splits", names[0]
	if len(names) == 1 {
		what = "split"
	}
	if slices.Contains(names, "train") {
		example = "train"
	}
	if other != "" {
		other = ", or " + other
	}
	return status.Errorf(status.InvalidArgument, "arrowio", "%s: the directory has the %s %s", dir, what, strings.Join(names, ", ")).
		WithHint("choose one with split=%q%s", example, other).With("path", dir)
}

// absent returns the error for a split that a directory does not have, without a hint.
func (f finder) absent(dir string) *status.Error {
	return noFile("%s: the directory has no split %q", dir, f.Split).With("path", dir)
}

// noSplit returns the error for a split that a directory does not have. The hint says which
// it has, if any.
func (f finder) noSplit(dir string, names []string) error {
	e := f.absent(dir)
	if i := strings.IndexAny(f.Split, "[+"); i > 0 && slices.Contains(names, f.Split[:i]) {
		return e.WithHint("a split is one name, such as %q: records of it are ds.slice(start, stop), and mf.concat joins splits", f.Split[:i])
	}
	if len(names) > 0 {
		return e.WithHint("it has %s", strings.Join(names, ", "))
	}
	if below := f.below(dir); below != "" {
		return e.WithHint("%s", below)
	}
	return e.WithHint("neither its files nor its directories have the names of splits: open them by path")
}

// readJSON reads the object in a JSON file of a directory with some entries. The value is
// nil without such a file.
func (f finder) readJSON(dir string, entries []blob.Entry, name string) (jsontext.Value, error) {
	if !isFile(entries, name) {
		return nil, nil
	}
	path := f.join(dir, name)
	text, err := f.readText(path)
	if err != nil {
		return nil, err
	}
	v, err := jsontext.Parse([]byte(text))
	if err == nil && v.Kind() != jsontext.Object {
		err = fmt.Errorf("expected an object, but found %s", v.Kind())
	}
	if err != nil {
		return nil, status.Errorf(status.DataLoss, "arrowio", "%s: %w", path, err).
			WithHint("%s", f.insteadOf(dir)).With("path", path)
	}
	return v, nil
}

// readText reads a file, up to maxJSON bytes of it.
func (f finder) readText(path string) (string, error) {
	b, err := f.Opener.Open(f.ctx, f.entry(path))
	if err != nil {
		return "", err
	}
	defer b.Close()
	text := make([]byte, min(b.Size(), maxJSON))
	if err := blob.ReadFull(f.ctx, b, text, 0); err != nil {
		return "", blob.ReadError(path, err)
	}
	return string(text), nil
}

// insteadOf returns the hint for a directory if its list of files cannot be used.
func (f finder) insteadOf(dir string) string {
	return "copy or download the directory again, or open its files by name, as in " + f.join(dir, "*"+suffixes[0])
}
