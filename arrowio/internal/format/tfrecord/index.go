package tfrecord

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/core/status"
)

const (
	// unitBytes is about how many bytes of records a unit has. A gather parses a whole unit to read
	// one row.
	unitBytes = 1 << 20

	// pieceBytes is how many bytes are read at a time to find the records.
	pieceBytes = 4 << 20

	// maxFeatures bounds the columns, because each takes memory for every record.
	maxFeatures = 2048
)

// Index says where the records of a file are, and which features they have.
type Index struct {
	Runs     []format.Run
	Features []Feature // in the order of their names
}

// Feature is what all records of some files have under one name.
type Feature struct {
	Name    string
	Kind    kind
	Records int64 // that have the feature
	Min     int64 // the fewest values of such a record
	Max     int64 // the most values

	// Other describes the first record whose values have another kind, or is "".
	Other string

	last int64 // the number of the last record that has the feature
}

// with returns the feature of the records of two features.
func (f Feature) with(other Feature) Feature {
	f.Records, f.Min, f.Max = f.Records+other.Records, min(f.Min, other.Min), max(f.Max, other.Max)
	return f
}

// IndexName names an index in a cache. It changes with what Find returns.
const IndexName = "examples 1"

// Find reads all records of a file, and checks them.
func Find(ctx context.Context, content *resident.File) (*Index, error) {
	x, found := &Index{}, map[string]*Feature{}
	run, size, next := format.Run{}, content.Size(), int64(frameBytes)
	var buffer []byte
	for at := int64(0); at < size; {
		if next > size-at {
			return nil, damaged(run.Number, at, fmt.Sprintf("the file ends before its %d bytes", next))
		}
		n := min(max(pieceBytes, next), size-at)
		buffer = slices.Grow(buffer[:0], int(n))[:n]
		if err := content.ReadFull(ctx, buffer, at); err != nil {
			return nil, err
		}
		var err error
		_, next, err = records(buffer, run.Number, at, func(number int64, record []byte) error {
			at += frameBytes + int64(len(record))
			run.End, run.Number, run.Records = at, number+1, run.Records+1
			if run.End-x.end() >= unitBytes || run.Records == format.MaxRunRecords {
				x.Runs = append(x.Runs, run)
				run.Records = 0
			}
			return note(found, number, record)
		})
		if err != nil {
			return nil, err
		}
	}
	if run.Records > 0 {
		x.Runs = append(x.Runs, run)
	}
	if len(found) == 0 {
		return nil, status.New(status.Unsupported, "arrowio", "no record has a feature").WithHint("write tf.Example with features")
	}
	for _, f := range found {
		x.Features = append(x.Features, *f)
	}
	slices.SortFunc(x.Features, byName)
	return x, nil
}

func byName(a, b Feature) int { return strings.Compare(a.Name, b.Name) }

// end returns the first byte after the last unit.
func (x *Index) end() int64 {
	if len(x.Runs) == 0 {
		return 0
	}
	return x.Runs[len(x.Runs)-1].End
}

// note adds a record to the features. A feature without values of a kind is missing.
func note(found map[string]*Feature, number int64, record []byte) error {
	return values(record, func(v value) error {
		n, ok := v.count()
		if !ok {
			return foreign()
		}
		if v.kind == nothing {
			return nil
		}
		f := found[string(v.name)]
		if f == nil {
			if len(found) == maxFeatures {
				return status.Errorf(status.Unsupported, "arrowio", "the records have more than %d features", maxFeatures).
					WithHint("store values under varying names as lists")
			}
			f = &Feature{Name: string(v.name), Kind: v.kind, Min: math.MaxInt64, last: -1}
			found[f.Name] = f
		}
		if f.last == number {
			return twice(v.name)
		}
		if f.Kind != v.kind && f.Other == "" {
			f.Other = fmt.Sprintf("record %d: %q has %v, and %v in the records before", number, v.name, v.kind, f.Kind)
		}
		*f = f.with(Feature{Records: 1, Min: n, Max: n})
		f.last = number
		return nil
	})
}

func twice(name []byte) error {
	return status.Errorf(status.DataLoss, "arrowio", "the feature %q occurs twice", name).WithHint("write each feature once").With("field", string(name))
}

// Append returns the index as bytes, to keep them.
func (x *Index) Append() ([]byte, error) {
	features, err := json.Marshal(x.Features)
	return format.AppendRuns(append(features, '\n'), x.Runs), err
}

// ReadIndex returns the index of a file of size bytes, or nil if it does not fit the file.
func ReadIndex(b []byte, size int64) *Index {
	x := &Index{}
	features, runs, _ := strings.Cut(string(b), "\n")
	if json.Unmarshal([]byte(features), &x.Features) != nil || len(x.Features) == 0 || len(x.Features) > maxFeatures {
		return nil
	}
	var ok bool
	if x.Runs, ok = format.ReadRuns([]byte(runs), size, unitBytes+frameBytes+maxRecord); !ok {
		return nil
	}
	for i, f := range x.Features {
		if f.Kind == nothing || f.Kind > int64List || f.Min < 0 || f.Max < f.Min || f.Max > maxRecord || i > 0 && byName(x.Features[i-1], f) >= 0 {
			return nil
		}
	}
	return x
}
