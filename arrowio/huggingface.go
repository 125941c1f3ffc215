package arrowio

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/meshfeed/meshfeed/arrowio/internal/blob"
	"github.com/meshfeed/meshfeed/core/status"
)

// maxJSON is how much of state.json and dataset_dict.json is read.
const maxJSON = 16 << 20

// stateFile is the file in which save_to_disk lists the files of a dataset.
const stateFile = "state.json"

// savedToDisk returns the files of a directory that Hugging Face's save_to_disk
// wrote, in their order. The list is nil for any other directory.
func (f finder) savedToDisk(dir string) ([]choice, error) {
	var dict struct {
		Splits []string `json:"splits"`
	}
	if found, err := f.readJSON(dir, "dataset_dict.json", &dict); err != nil {
		return nil, err
	} else if found {
		return nil, severalSplits(dir, dict.Splits)
	}
	var state struct {
		Files *[]struct {
			Name string `json:"filename"`
		} `json:"_data_files"`
		Indices *[]json.RawMessage `json:"_indices_data_files"`
	}
	found, err := f.readJSON(dir, stateFile, &state)
	if !found || err != nil || state.Files == nil {
		return nil, err
	}
	if state.Indices != nil && len(*state.Indices) > 0 {
		return nil, status.Errorf(status.Unsupported, "arrowio", "%s: the dataset was saved with an indices mapping", dir).
			WithHint("call flatten_indices() before save_to_disk()").With("path", dir)
	}
	list := make([]choice, 0, len(*state.Files))
	for _, file := range *state.Files {
		if !filepath.IsLocal(file.Name) {
			return nil, status.Errorf(status.DataLoss, "arrowio", "%s: state.json names a file outside of the directory: %q", dir, file.Name).
				WithHint("%s", insteadOf(dir)).With("path", dir)
		}
		list = append(list, choice{path: filepath.Join(dir, file.Name), missing: filepath.Join(dir, stateFile) + " lists it: copy or download the directory again"})
	}
	if len(list) == 0 {
		return nil, status.Errorf(status.NotFound, "arrowio", "%s: state.json lists no data files: what was saved had no records", dir).
			WithHint("save a dataset that has some").With("path", dir)
	}
	return list, nil
}

// severalSplits is the error for a directory that holds a DatasetDict.
func severalSplits(dir string, splits []string) error {
	e := status.Errorf(status.InvalidArgument, "arrowio", "%s: this is a dictionary of datasets with the splits %s", dir, strings.Join(splits, ", ")).With("path", dir)
	if len(splits) == 0 {
		e.Msg = dir + ": this is a dictionary of datasets without splits"
		return e.WithHint("save one that has some")
	}
	return e.WithHint("open one of them: %s", filepath.Join(dir, splits[0]))
}

// readJSON reads a JSON file of a directory. It is false if there is none.
func (f finder) readJSON(dir, name string, into any) (found bool, err error) {
	path := filepath.Join(dir, name)
	b, err := f.opener.Open(f.ctx, path)
	if status.CodeOf(err) == status.NotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer b.Close()
	text := make([]byte, min(b.Size(), maxJSON))
	if err := blob.ReadFull(f.ctx, b, text, 0); err != nil {
		return false, readError(path, err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return false, status.Errorf(status.DataLoss, "arrowio", "%s: %w", path, withoutGoTypes(err)).
			WithHint("%s", insteadOf(dir)).With("path", path)
	}
	return true, nil
}

// withoutGoTypes rewrites an error about JSON of another type than expected, which
// names types of Go.
func withoutGoTypes(err error) error {
	var other *json.UnmarshalTypeError
	if !errors.As(err, &other) {
		return err
	}
	if other.Field == "" {
		return fmt.Errorf("unexpected JSON %s", other.Value)
	}
	return fmt.Errorf("unexpected JSON %s in %q", other.Value, other.Field)
}

// insteadOf returns the hint for a directory whose list of files cannot be used.
func insteadOf(dir string) string {
	return "copy or download the directory again, or open its files by name, as in " + filepath.Join(dir, "*"+suffixes[0])
}
