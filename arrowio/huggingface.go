package arrowio

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/arrowio/internal/blob"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/jsontext"
)

// maxJSON bounds the bytes that are read of state.json and dataset_dict.json.
const maxJSON = 16 << 20

// stateFile is the file in which save_to_disk lists the files of a dataset.
const stateFile = "state.json"

// huggingFace returns the files of a directory that libraries of Hugging Face wrote, or a
// program that names files like them. The list is nil for any other directory.
func (f finder) huggingFace(dir string, entries []blob.Entry) ([]choice, error) {
	for _, find := range []func(string, []blob.Entry) ([]choice, error){f.dictionary, f.savedToDisk, f.download, f.cached, f.named} {
		if list, err := find(dir, entries); list != nil || err != nil {
			return list, err
		}
	}
	if f.split != "" {
		return nil, f.noSplit(dir, nil)
	}
	return nil, nil
}

// dictionary returns the files of a split of a DatasetDict that save_to_disk wrote.
func (f finder) dictionary(dir string, _ []blob.Entry) ([]choice, error) {
	dict, err := f.readJSON(dir, "dataset_dict.json")
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
	case f.split == "":
		return nil, severalSplits(dir, names).WithHint("choose one with split=%q, or open %s", names[0], filepath.Join(dir, names[0]))
	case !slices.Contains(names, f.split) || !filepath.IsLocal(f.split):
		return nil, f.noSplit(dir, names)
	}
	return finder{ctx: f.ctx, opener: f.opener}.directory(filepath.Join(dir, f.split))
}

// savedToDisk returns the files of a Dataset that save_to_disk wrote, in their order.
func (f finder) savedToDisk(dir string, _ []blob.Entry) ([]choice, error) {
	state, err := f.readJSON(dir, stateFile)
	files := state.Get("_data_files")
	if err != nil || files.Kind() != jsontext.List {
		return nil, err
	}
	if split, _ := state.Get("_split").Text(); f.split != "" && f.split != split {
		return nil, f.noSplit(dir, []string{split})
	}
	if slices.Collect(state.Get("_indices_data_files").Elements()) != nil {
		return nil, oldDirectory(dir, "with an indices mapping")
	}
	list := []choice{}
	for file := range files.Elements() {
		name, ok := file.Get("filename").Text()
		if !ok || !filepath.IsLocal(name) {
			return nil, status.Errorf(status.DataLoss, "arrowio", "%s: state.json lists %.100s, which is not a file in the directory", dir, file).
				WithHint("%s", insteadOf(dir)).With("path", dir)
		}
		skip, _ := file.Get("skip").Int()
		take, part := file.Get("take").Int()
		if skip != 0 || part && take <= 0 {
			return nil, oldDirectory(dir, aPart)
		}
		list = append(list, choice{path: filepath.Join(dir, name), records: take, missing: filepath.Join(dir, stateFile) + " lists it: copy or download the directory again"})
	}
	if len(list) == 0 {
		return nil, status.Errorf(status.NotFound, "arrowio", "%s: state.json lists no data files: what was saved had no records", dir).
			WithHint("save a dataset that has some").With("path", dir)
	}
	return list, nil
}

// aPart is how a dataset was saved whose files have other records, too.
const aPart = "as a part of its files"

// checkParts returns an error if a file has other records than those of the dataset.
func (d *Dataset) checkParts() error {
	for _, f := range d.files {
		if f.expected > 0 && f.expected != f.records {
			return oldDirectory(filepath.Dir(f.path), aPart)
		}
	}
	return nil
}

// oldDirectory returns the error for a directory of datasets 1.5 or older, whose state.json
// says which records of the files belong to the dataset.
func oldDirectory(dir, how string) error {
	return status.Errorf(status.Unsupported, "arrowio", "%s: the dataset was saved %s, which datasets up to 1.5 follows and later releases ignore", dir, how).
		WithHint("load it with such an old release, call flatten_indices(), and save it again").With("path", dir)
}

// download returns the files of a dataset in the cache of huggingface_hub, of the revision
// "main" or of the only one. The files of a revision may lie in a directory "data" in it.
func (f finder) download(dir string, entries []blob.Entry) ([]choice, error) {
	if isDir(entries, "snapshots") && isDir(entries, "blobs") {
		snapshots := filepath.Join(dir, "snapshots")
		revisions, err := f.opener.List(f.ctx, snapshots)
		if err != nil {
			return nil, err
		}
		main, err := f.readText(filepath.Join(dir, "refs", "main"))
		main = strings.TrimSpace(main)
		switch {
		case err == nil && isDir(revisions, main):
			return f.directory(filepath.Join(snapshots, main))
		case len(revisions) == 1:
			return f.directory(filepath.Join(snapshots, revisions[0].Name))
		}
		return nil, status.Errorf(status.InvalidArgument, "arrowio", "%s: the download has %d revisions, and none of them is \"main\"", dir, len(revisions)).
			WithHint("open one of those in %s", snapshots).With("path", dir)
	}
	data := filepath.Join(dir, "data")
	if slices.ContainsFunc(entries, func(e blob.Entry) bool { return !e.Dir && isArrow(e.Name) }) || !isDir(entries, "data") {
		return nil, nil
	}
	inside, err := f.opener.List(f.ctx, data)
	if err == nil && slices.ContainsFunc(inside, func(e blob.Entry) bool { return !e.Dir && isArrow(e.Name) && shardOf(e.Name).of > 0 }) {
		return f.directory(data)
	}
	return nil, nil
}

func isDir(entries []blob.Entry, name string) bool {
	return slices.Contains(entries, blob.Entry{Name: name, Dir: true})
}

// cached returns the files of a split in the cache of load_dataset. There, other files are
// results of map and filter.
func (f finder) cached(dir string, entries []blob.Entry) ([]choice, error) {
	info, err := f.readJSON(dir, "dataset_info.json")
	if err != nil {
		return nil, nil // other programs have files of this name, too
	}
	files := map[string][]string{}
	var names []string
	for name := range info.Get("splits").Members() {
		if list := filesOf(dir, entries, name); list != nil {
			names, files[name] = append(names, name), list
		}
	}
	switch {
	case len(names) == 0:
		return nil, nil
	case f.split == "" && len(names) > 1:
		return nil, severalSplits(dir, names).WithHint("choose one with split=%q", names[0])
	case f.split == "":
		f.split = names[0]
	case files[f.split] == nil:
		return nil, f.noSplit(dir, names)
	}
	return wholeSplit(dir, files[f.split])
}

// named returns the files whose names say that they belong to the split, or those in a
// directory of its name. If no split is chosen, the files must not be shards of several.
func (f finder) named(dir string, entries []blob.Entry) ([]choice, error) {
	var names []string
	for _, e := range entries {
		shard := shardOf(e.Name)
		isSplit := shard.of > 0 || f.split != "" || slices.Contains(usualSplits, shard.stem)
		if !e.Dir && isArrow(e.Name) && isSplit && !slices.Contains(names, shard.split) {
			names = append(names, shard.split)
		}
	}
	slices.Sort(names)
	if f.split == "" {
		if len(names) > 1 {
			return nil, severalSplits(dir, names).WithHint("choose one with split=%q, or open %s for all", names[0], filepath.Join(dir, "*"))
		}
		return nil, checkShards(dir, arrowFiles(dir, entries))
	}
	if files := filesOf(dir, entries, f.split); files != nil {
		return wholeSplit(dir, files)
	}
	if isDir(entries, f.split) {
		return finder{ctx: f.ctx, opener: f.opener}.directory(filepath.Join(dir, f.split))
	}
	return nil, f.noSplit(dir, names)
}

// usualSplits are names of files without numbers that are taken for splits.
var usualSplits = []string{"train", "test", "validation", "valid", "val", "dev", "eval"}

// shard is what the name of a file says: train-00001-of-00004.parquet is file 1 of 4 of the
// split "train". The split may follow the name of the dataset: mnist-train.arrow.
type shard struct {
	name   string
	stem   string // without the suffix and the numbers
	split  string // the last part of the stem
	number int
	of     int // 0 if there are no numbers
}

func shardOf(name string) shard {
	stem := strings.TrimSuffix(name, filepath.Ext(name))
	s := shard{name: name, stem: stem}
	if m := numbered.FindStringSubmatch(stem); m != nil {
		s.stem = m[1]
		s.number, _ = strconv.Atoi(m[2])
		s.of, _ = strconv.Atoi(m[3])
	}
	s.split = s.stem[strings.LastIndex(s.stem, "-")+1:]
	return s
}

// numbered matches names of shards. Uploads before 2023 have a hash at the end.
var numbered = regexp.MustCompile(`^(.+)-([0-9]{5,})-of-([0-9]{5,})(?:-[0-9a-f]{8,})?$`)

// checkShards returns an error if the name of a file says that there are others, and a file
// is missing or comes twice.
func checkShards(dir string, files []string) error {
	found := map[string][]shard{}
	for _, path := range files {
		s := shardOf(filepath.Base(path))
		found[s.stem] = append(found[s.stem], s)
	}
	for _, stem := range slices.Sorted(maps.Keys(found)) {
		shards := found[stem]
		slices.SortFunc(shards, func(a, b shard) int { return cmp.Or(cmp.Compare(a.of, b.of), cmp.Compare(a.number, b.number)) })
		for i, s := range shards[1:] {
			if before := shards[i]; s.of > 0 && (s.of != before.of || s.number == before.number) {
				return status.Errorf(status.InvalidArgument, "arrowio", "%s: %s and %s belong to two sets of files, by their names", dir, before.name, s.name).
					WithHint("open one of them by a glob, or move it to another directory").With("path", dir)
			}
		}
		if of := shards[0].of; len(shards) < of {
			return status.Errorf(status.NotFound, "arrowio", "%s: the names of files say that there are %d files %s-*-of-%05d, but the directory has %d", dir, of, stem, of, len(shards)).
				WithHint("copy or download the missing ones, or open those that exist by a glob: %s", filepath.Join(dir, stem+"-*")).With("path", dir)
		}
	}
	return nil
}

// filesOf returns the files of a directory whose names say that they belong to a split.
func filesOf(dir string, entries []blob.Entry, split string) (files []string) {
	for _, path := range arrowFiles(dir, entries) {
		if stem := shardOf(filepath.Base(path)).stem; stem == split || strings.HasSuffix(stem, "-"+split) {
			files = append(files, path)
		}
	}
	return files
}

// arrowFiles returns the files of Arrow and Parquet in a directory.
func arrowFiles(dir string, entries []blob.Entry) (files []string) {
	for _, e := range entries {
		if !e.Dir && isArrow(e.Name) {
			files = append(files, filepath.Join(dir, e.Name))
		}
	}
	return files
}

// wholeSplit returns the files of a split in order, if none is missing.
func wholeSplit(dir string, files []string) ([]choice, error) {
	if err := checkShards(dir, files); err != nil {
		return nil, err
	}
	return chosen(sorted(files), ""), nil
}

// severalSplits returns the error for a directory of several splits, of which none is chosen.
func severalSplits(dir string, names []string) *status.Error {
	return status.Errorf(status.InvalidArgument, "arrowio", "%s: the directory has the splits %s", dir, strings.Join(names, ", ")).With("path", dir)
}

// noSplit returns the error for a split that a directory does not have.
func (f finder) noSplit(dir string, names []string) error {
	e := status.Errorf(status.NotFound, "arrowio", "%s: the directory has no split %q", dir, f.split).With("path", dir)
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "" })
	if len(names) == 0 {
		return e.WithHint("neither its files nor its directories have the names of splits: open them by path")
	}
	return e.WithHint("it has %s", strings.Join(names, ", "))
}

// readJSON reads the object in a JSON file of a directory. The value is nil if there
// is no such file.
func (f finder) readJSON(dir, name string) (jsontext.Value, error) {
	path := filepath.Join(dir, name)
	text, err := f.readText(path)
	if status.CodeOf(err) == status.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	v, err := jsontext.Parse([]byte(text))
	if err == nil && v.Kind() != jsontext.Object {
		err = fmt.Errorf("expected an object, but found %s", v.Kind())
	}
	if err != nil {
		return nil, status.Errorf(status.DataLoss, "arrowio", "%s: %w", path, err).
			WithHint("%s", insteadOf(dir)).With("path", path)
	}
	return v, nil
}

// readText reads a file, up to maxJSON bytes of it.
func (f finder) readText(path string) (string, error) {
	b, err := f.opener.Open(f.ctx, path)
	if err != nil {
		return "", err
	}
	defer b.Close()
	text := make([]byte, min(b.Size(), maxJSON))
	if err := blob.ReadFull(f.ctx, b, text, 0); err != nil {
		return "", readError(path, err)
	}
	return string(text), nil
}

// insteadOf returns the hint for a directory whose list of files cannot be used.
func insteadOf(dir string) string {
	return "copy or download the directory again, or open its files by name, as in " + filepath.Join(dir, "*"+suffixes[0])
}
