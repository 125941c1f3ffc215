package arrowio

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/files"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/core/view"
)

// setRows makes the rows of the dataset: the fields of the table, and a field for each chosen
// key that directories name.
func (a *assembly) setRows() error {
	a.rows = stored{a.Dataset}
	list, runs := make([]*files.File, len(a.files.List)), make([]int64, len(a.files.List))
	for i, f := range a.files.List {
		list[i], runs[i] = f.File, f.Records
	}
	keys, err := files.Keys(list)
	if err != nil || len(keys) == 0 {
		return err
	}
	keys = slices.DeleteFunc(keys, func(k view.Constant) bool { return !a.union.Has(k.Field.Name) })
	if a.rows, err = view.Constants(stored{a.Dataset}, runs, keys...); err != nil || a.union.Chosen == nil {
		return err
	}
	a.rows, err = view.Select(a.rows, a.union.Chosen...)
	return err
}

// stored is a dataset without the fields that directories name.
type stored struct{ *Dataset }

// Schema implements source.Source.
func (s stored) Schema() source.Schema { return s.table.Schema }

// Gatherer implements source.Source.
func (s stored) Gatherer(parts []source.Part) (source.Gatherer, error) {
	return s.parts.Gatherer(parts)
}

// Reader implements source.Source.
func (s stored) Reader(fields []int) (source.Reader, error) { return s.parts.Reader(fields) }

// Facts implements source.Source. The units are the record batches.
func (s stored) Facts() source.Facts {
	return source.Facts{
		Units: s.table.Index.Units, Coverage: s.toFingerprint().Coverage, Cache: s.parts.Info, CacheBytes: s.decoded.Limit,
		Decoding: s.decoded.Work, Check: s.lists.Check, Components: s.components, Version: s.version, Adjacent: s.table.Adjacent, Notes: s.parts, Fetched: s.fetched, Commits: s.pinned, FarBytes: s.farBytes,
	}
}

// version implements Version of [source.Facts].
func (s stored) version() (string, error) {
	h := sha256.New()
	for _, f := range s.files.List {
		b, versioned := f.Content.Blob.(blob.Versioned)
		if !versioned {
			return "", status.Errorf(status.Unsupported, "arrowio", "%s: the storage of the file does not say when it changes", f.Path).
				WithHint("open a local copy of the files").With("path", f.Path)
		}
		fmt.Fprintf(h, "%q\n", b.Version())
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
