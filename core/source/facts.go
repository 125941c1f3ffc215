package source

import (
	"context"

	"github.com/meshfeed/meshfeed/core/status"
)

// Facts is what a source knows beside its rows. A function is nil if the source does not know
// the answer. The answers are functions because some take time, and some change while the
// source is in use. None but Check reads rows.
//
// A source that passes on rows of another takes the facts of the other, and replaces the facts
// that it changes.
type Facts struct {
	// Units returns the number of records of every unit, in the order of the records, or nil
	// if the units are not known. A unit is a run of records that are read or decoded
	// together, such as a record batch. The caller must not change the list.
	Units func() []int64

	// Coverage returns how many bytes of the data the fingerprint hashes, and how many there
	// are.
	Coverage func() (hashed, of int64)

	// CacheBytes returns the most bytes of decoded rows that the source keeps in memory, or 0
	// if nothing has to be decoded.
	CacheBytes func() int64

	// Cache returns where the source keeps decoded units.
	Cache func() CacheInfo

	// Decoding returns how long threads have decoded so far.
	Decoding func() Work

	// Fetched returns what was read from other machines so far, for all loaders over the source.
	Fetched func() Fetched

	// FarBytes returns the size of the files on other machines that are read by units, as stored.
	FarBytes func() int64

	// Commits returns the names under which the same files open again, if a branch may move: sorted, and
	// each with a commit, such as "hf://datasets/ORG/NAME@0123456789012345678901234567890123456789".
	Commits func() []string

	// Check reads what it needs to verify that the rows [start, stop) of the fields have the
	// shapes of the schema. It is for sources with lists, because metadata do not prove the
	// shapes of lists. The error names the first record with another shape. A range that was
	// checked is not read again.
	Check func(ctx context.Context, fields []int, start, stop int64) error

	// Version returns a text that changes with the bytes of the files, for rows that are kept
	// longer than the process: a fingerprint may cover samples only. The text may differ from
	// host to host. The error is Unsupported, and says what to do, if no rows can be kept: they
	// depend on the draw, or the fingerprint does not tell them from others. Nil stands for a
	// source without files.
	Version func() (string, error)

	// Adjacent returns a gatherer of rows that lie one after the other, so that a window of records
	// is one copy. Each part is of a row with one more dimension, the first, which counts
	// length records. number returns the number that the gatherer gives the window from a
	// record on, or -1 if its rows lie apart. The gatherer is nil if rows of the parts never
	// lie so. Its errors may name other records.
	Adjacent func(parts []Part, length int64) (g Gatherer, number func(record int64) int64, err error)

	// Drawn reports that record k stands for another record in every epoch, as in a mixture. A loader
	// takes such records in their order, and views that choose records by their rows refuse them.
	Drawn bool

	// Changes returns the points from which on epochs have other records than they had before, such as
	// new weights of a mixture, in their order. A run that was saved before a change was made continues
	// with it.
	Changes func(ctx context.Context) ([]Change, error)

	// Slow reports that rows take much longer to compute than to copy, such as images to decode. So
	// even a small batch is worth all threads.
	Slow bool

	// Notes keeps small results for later runs, or is nil if nothing may be kept.
	Notes Notes

	// Components returns the components of the fingerprint, which is the hash of their root.
	Components func(ctx context.Context) (Component, error)
}

// Change is a point in the sequence of all epochs from which on a source has other records.
type Change struct {
	Record int64       // counted over all epochs: earlier records are as they were
	Before Fingerprint // of the source without this change and those after it
}

// Notes keeps small results for later runs and for the other processes of a host, such as counts that
// took a pass over all rows. The key has to change with all that the text depends on. A text that cannot be
// kept is not an error, because it can be made again.
type Notes interface {
	Note(key string) []byte // nil if there is none
	KeepNote(key string, text []byte)
}

// Fetched counts what was read from other machines, by requests over a network.
type Fetched struct {
	Requests, Retries int64 // all requests, and the requests that repeat or continue another
	Planned, Bytes    int64 // bytes that were asked for, and that came
}

// CacheInfo says where a source keeps decoded units.
type CacheInfo struct {
	Folder string // "" if only memory is used, or if nothing was kept on disk yet
	Limit  int64  // the most bytes of all files in the folder

	// Problem says why units are kept in memory only, although they exceed it and the
	// user has not chosen that. Else it is nil.
	Problem error
}

// CoverageOf returns the Coverage of a source, or zeros if it is not known.
func CoverageOf(src Source) (hashed, of int64) {
	if coverage := src.Facts().Coverage; coverage != nil {
		return coverage()
	}
	return 0, 0
}

// CacheOf returns the CacheBytes of a source, or 0 if nothing has to be decoded.
func CacheOf(src Source) int64 { return answer(src.Facts().CacheBytes) }

// CacheInfoOf returns where a source keeps decoded units.
func CacheInfoOf(src Source) CacheInfo { return answer(src.Facts().Cache) }

// DecodingOf returns the decoding of a source so far.
func DecodingOf(src Source) Work { return answer(src.Facts().Decoding) }

// FetchedOf returns what a source has read from other machines so far.
func FetchedOf(src Source) Fetched { return answer(src.Facts().Fetched) }

// FarBytesOf returns the FarBytes of a source, or 0 if all its files are here.
func FarBytesOf(src Source) int64 { return answer(src.Facts().FarBytes) }

// CommitsOf returns the Commits of a source.
func CommitsOf(src Source) []string { return answer(src.Facts().Commits) }

// VersionOf returns the Version of a source. It is empty if all values are covered by the
// fingerprint. The error is also Unsupported if the fingerprint covers samples, and the source has no version.
func VersionOf(src Source) (string, error) {
	facts := src.Facts()
	if facts.Version != nil {
		return facts.Version()
	}
	if hashed, of := CoverageOf(src); hashed < of {
		return "", status.Errorf(status.Unsupported, "source", "the fingerprint covers %d of %d bytes in memory, so it does not tell the rows from others", hashed, of).
			WithHint("store the data in a file (Python: meshfeed.open)")
	}
	return "", nil
}

// answer returns what a function of the facts returns, or the zero value if it is not known.
func answer[T any](fact func() T) (value T) {
	if fact != nil {
		value = fact()
	}
	return value
}
