package arrowio

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/arrowio/internal/blob"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/jsontext"
)

// maxJSON bounds the bytes that are read of state.json and dataset_dict.json.
const maxJSON = 16 << 20

// stateFile is the file in which save_to_disk lists the files of a dataset.
const stateFile = "state.json"

// savedToDisk returns the files of a directory that save_to_disk of Hugging Face
// datasets wrote, in their order. The list is nil for any other directory.
func (f finder) savedToDisk(dir string) ([]choice, error) {
	dict, err := f.readJSON(dir, "dataset_dict.json")
	if err != nil {
		return nil, err
	}
	if dict != nil {
		return nil, severalSplits(dir, dict.Get("splits"))
	}
	state, err := f.readJSON(dir, stateFile)
	files := state.Get("_data_files")
	if err != nil || files.Kind() != jsontext.List {
		return nil, err
	}
	if slices.Collect(state.Get("_indices_data_files").Elements()) != nil {
		return nil, status.Errorf(status.Unsupported, "arrowio", "%s: the dataset was saved with an indices mapping", dir).
			WithHint("call flatten_indices() before save_to_disk()").With("path", dir)
	}
	list := []choice{}
	for file := range files.Elements() {
		name, ok := file.Get("filename").Text()
		if !ok || !filepath.IsLocal(name) {
			return nil, status.Errorf(status.DataLoss, "arrowio", "%s: state.json lists %.100s, which is not a file in the directory", dir, file).
				WithHint("%s", insteadOf(dir)).With("path", dir)
		}
		list = append(list, choice{path: filepath.Join(dir, name), missing: filepath.Join(dir, stateFile) + " lists it: copy or download the directory again"})
	}
	if len(list) == 0 {
		return nil, status.Errorf(status.NotFound, "arrowio", "%s: state.json lists no data files: what was saved had no records", dir).
			WithHint("save a dataset that has some").With("path", dir)
	}
	return list, nil
}

// severalSplits returns the error for a directory that holds a DatasetDict.
func severalSplits(dir string, splits jsontext.Value) error {
	var names []string
	for split := range splits.Elements() {
		name, _ := split.Text()
		names = append(names, name)
	}
	e := status.Errorf(status.InvalidArgument, "arrowio", "%s: this is a dictionary of datasets with the splits %s", dir, strings.Join(names, ", ")).With("path", dir)
	if len(names) == 0 {
		e.Msg = dir + ": this is a dictionary of datasets without splits"
		return e.WithHint("save one that has some")
	}
	return e.WithHint("open one of them: %s", filepath.Join(dir, names[0]))
}

// readJSON reads the object in a JSON file of a directory. The value is nil if there
// is no such file.
func (f finder) readJSON(dir, name string) (jsontext.Value, error) {
	path := filepath.Join(dir, name)
	b, err := f.opener.Open(f.ctx, path)
	if status.CodeOf(err) == status.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer b.Close()
	text := make([]byte, min(b.Size(), maxJSON))
	if err := blob.ReadFull(f.ctx, b, text, 0); err != nil {
		return nil, readError(path, err)
	}
	v, err := jsontext.Parse(text)
	if err == nil && v.Kind() != jsontext.Object {
		err = fmt.Errorf("expected an object, but found %s", v.Kind())
	}
	if err != nil {
		return nil, status.Errorf(status.DataLoss, "arrowio", "%s: %w", path, err).
			WithHint("%s", insteadOf(dir)).With("path", path)
	}
	return v, nil
}

// insteadOf returns the hint for a directory whose list of files cannot be used.
func insteadOf(dir string) string {
	return "copy or download the directory again, or open its files by name, as in " + filepath.Join(dir, "*"+suffixes[0])
}
