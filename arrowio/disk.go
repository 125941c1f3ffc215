package arrowio

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/diskcache"
	"github.com/meshfeed/meshfeed/arrowio/internal/local"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// disk decides which fields of a dataset are kept decoded on disk.
type disk struct {
	path    string // "" or "auto" for the user's cache, "memory" for none, else a folder
	home    string // "" for the user's cache directory
	limit   int64  // 0 for the default
	over    int64  // "auto" keeps fields on disk if they take more bytes
	io      string
	handler FaultHandler

	mu      sync.Mutex
	folder  *diskcache.Folder
	problem error // why "auto" keeps units in memory only
	sets    map[string]*partSet
}

func (k *disk) auto() bool { return k.path == "" || k.path == "auto" }

// chosen reports whether the caller has chosen the folder.
func (k *disk) chosen() bool { return !k.auto() && k.path != "memory" }

// cached returns where decoded units are kept.
func (d *Dataset) cached() source.CacheInfo {
	k := &d.disk
	k.mu.Lock()
	defer k.mu.Unlock()
	info := source.CacheInfo{Problem: k.problem}
	if k.folder != nil && k.problem == nil {
		info.Folder, info.Limit = k.folder.Path(), k.folder.Limit()
	}
	return info
}

// gatherer returns a gatherer of parts of the table's rows, which are kept on disk if they
// should be.
func (d *Dataset) gatherer(parts []source.Part) (source.Gatherer, error) {
	decoding, err := d.table.Gatherer(parts)
	if err != nil {
		return nil, err
	}
	fields := make([]int, len(parts))
	for i, p := range parts {
		fields[i] = p.Field
	}
	set, err := d.partsOf(fields)
	if set == nil || err != nil {
		return decoding, err
	}
	return set.gatherer(parts, decoding)
}

// reader returns a reader of fields of the table, as gatherer does.
func (d *Dataset) reader(fields []int) (source.Reader, error) {
	decoding, err := d.table.Reader(fields)
	if err != nil {
		return nil, err
	}
	set, err := d.partsOf(fields)
	if set == nil || err != nil {
		return decoding, err
	}
	return set.reader(fields, decoding)
}

// partsOf returns the set for some fields, or nil if they are kept in memory only: because
// the caller wants that, because all of them fit, or because of a problem.
func (d *Dataset) partsOf(fields []int) (*partSet, error) {
	k := &d.disk
	fields = slices.Clone(fields)
	slices.Sort(fields)
	fields = slices.Compact(fields)
	if k.path == "memory" || len(fields) == 0 || d.Len() == 0 || !d.canStore() {
		return nil, nil
	}
	if k.auto() && !d.exceeds(fields, k.over) {
		return nil, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	name := fmt.Sprint(fields)
	if k.problem != nil || k.sets[name] != nil {
		return k.sets[name], nil
	}
	set, err := d.newParts(fields)
	if err != nil && k.auto() {
		k.problem = err
		return nil, nil
	}
	if err == nil {
		k.sets[name] = set
	}
	return set, err
}

// exceeds reports whether some fields take about more than a number of bytes decoded. Only metadata
// of a unit say how large its ragged fields are, so it reads them until there are more.
func (d *Dataset) exceeds(fields []int, bytes int64) bool {
	for _, f := range d.files {
		for batch := f.first; batch < f.end(); batch++ {
			for _, i := range fields {
				if bytes -= d.likelyBytes(f, batch, i); bytes < 0 {
					return true
				}
			}
		}
	}
	return false
}

// likelyBytes returns about how many bytes a field of a record batch has decoded. It leaves errors to
// the gather that needs the record batch.
func (d *Dataset) likelyBytes(f *file, batch, i int) int64 {
	field := d.table.Fields[i]
	if field.Ragged == 0 {
		return (d.table.Index.Rows(batch)*field.RowBits() + 7) / 8
	}
	number, own := f.columnOf(d.columns[i], field)
	if number < 0 {
		return 0
	}
	bytes, err := f.contents.Size(d.life, batch-f.first, number, own)
	if err != nil {
		return 0
	}
	return bytes
}

// canStore reports whether all files are encoded, and have versions.
func (d *Dataset) canStore() bool {
	return !slices.ContainsFunc(d.files, func(f *file) bool {
		_, versioned := f.content.Blob.(blob.Versioned)
		return f.encoding == "" || !versioned
	})
}

// newParts opens the folder if necessary, and makes the set for some fields.
func (d *Dataset) newParts(fields []int) (*partSet, error) {
	k := &d.disk
	if err := k.open(); err != nil {
		return nil, err
	}
	need := int64(0)
	for _, i := range fields {
		if f := d.table.Fields[i]; f.Ragged == 0 {
			need += d.Len() * f.RowBits() / 8
		}
	}
	if k.folder.Unwritable() != nil {
		return d.madeParts(fields)
	}
	if need > k.folder.Limit() {
		return nil, status.Errorf(status.ResourceExhausted, "arrowio", "the decoded fields take %d bytes, but the cache in %s may have %d", need, k.folder.Path(), k.folder.Limit()).
			WithHint("give the cache more bytes (cache_bytes), or a folder on a larger disk; or set cache to memory").With("path", k.folder.Path())
	}
	return newPartSet(d, k.folder, fields, k.io, k.handler)
}

// madeParts makes the set for some fields in a folder that cannot be written. All parts must
// be in it.
func (d *Dataset) madeParts(fields []int) (*partSet, error) {
	k := &d.disk
	set, err := newPartSet(d, k.folder, fields, k.io, k.handler)
	if err != nil {
		return nil, err
	}
	missing := 0
	for _, p := range set.parts {
		if !k.folder.Has(p.key) {
			missing++
		}
	}
	var e *status.Error
	if unwritable := k.folder.Unwritable(); missing > 0 && errors.As(unwritable, &e) {
		return nil, status.Errorf(status.IO, "arrowio", "%s, and %d of %d files of the decoded fields are not in it", e.Msg, missing, len(set.parts)).
			WithHint("%s", e.Hint).With("path", k.folder.Path())
	}
	return set, nil
}

// open opens the folder.
func (k *disk) open() (err error) {
	if k.folder != nil {
		return nil
	}
	path := k.path
	if k.auto() {
		if path, err = diskcache.Default(k.home); err != nil {
			return err
		}
	}
	folder, err := diskcache.Open(path, k.limit)
	if err != nil {
		return err
	}
	if k.auto() && local.IsRemote(path) {
		return status.Errorf(status.Unsupported, "arrowio", "the cache in %s would lie on a network file system", path).
			WithHint("give a folder on a local disk (cache)").With("path", path)
	}
	k.folder, k.sets = folder, map[string]*partSet{}
	return nil
}

// close closes the files of all sets. No call may run.
func (k *disk) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range k.sets {
		s.close()
	}
}

// decodingError is the error of a decoding for a part. It is left to the gathers that decode
// the unit in memory.
type decodingError struct{ error }

func (e *decodingError) Unwrap() error { return e.error }

func isDecoding(err error) bool {
	var d *decodingError
	return errors.As(err, &d)
}

// ready makes the parts of some records ready. It returns false if they have to be decoded
// in memory instead: because of damage, or because the folder has no room and the caller
// has not chosen it.
func (s *partSet) ready(ctx context.Context, n int, record func(i int) int64) (bool, error) {
	if s.missing.Load() == 0 {
		return true, nil
	}
	if s.gaveUp() {
		return false, nil
	}
	list := s.needed(n, record)
	if len(list) == 0 {
		return true, nil
	}
	ctx, stop := s.d.table.Calls.Join(ctx)
	defer stop()
	began := time.Now()
	defer func() { source.TimesOf(ctx).AddDecode(time.Since(began)) }()
	s.hasten(list)
	for _, p := range list {
		for !p.ready.Load() {
			if err := s.wait(ctx, p); err != nil {
				return false, s.explain(ctx, err)
			}
		}
	}
	return true, nil
}

// explain returns the error of a part for a gather, or nil if the gather can decode its
// units in memory.
func (s *partSet) explain(ctx context.Context, err error) error {
	k := &s.d.disk
	switch {
	case isDecoding(err):
		return nil
	case ctx.Err() != nil:
		return gatherEnded(ctx.Err())
	}
	missing := int64(0)
	for _, p := range s.parts {
		if !p.ready.Load() {
			missing += p.bytes
		}
	}
	what, code := err.Error(), status.IO
	var known *status.Error
	if errors.As(err, &known) {
		what, code = known.Msg, known.Code
	}
	failed := status.Errorf(code, "arrowio", "%s; about %d bytes more are needed", what, missing).
		WithHint("make room, or give another folder (cache) or limit (cache_bytes); or set cache to memory").With("path", s.folder.Path())
	if !k.auto() {
		return failed
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.problem = failed
	s.remove()
	return nil
}

// remove removes the parts that were made, because no more can be. Those of gathers in
// progress stay open until the dataset is closed.
func (s *partSet) remove() {
	for _, p := range s.parts {
		if p.ready.Load() {
			_ = s.folder.Remove(p.key)
		}
	}
}

// gaveUp reports whether the folder had a problem, so that no further part is made.
func (s *partSet) gaveUp() bool {
	s.d.disk.mu.Lock()
	defer s.d.disk.mu.Unlock()
	return s.d.disk.problem != nil
}

// needed returns the parts of some records that are not ready, each once. It ignores records
// that do not exist.
func (s *partSet) needed(n int, record func(i int) int64) (list []*partState) {
	seen := make([]bool, len(s.parts))
	for i := range n {
		r := record(i)
		if r < 0 || r >= s.table.Index.Len() {
			continue
		}
		batch, _ := s.table.Index.Locate(r)
		if p := s.parts[s.of[batch]]; !seen[p.number] {
			seen[p.number] = true
			if !p.ready.Load() {
				list = append(list, p)
			}
		}
	}
	return list
}

// announce begins to make the parts of records.
func (s *partSet) announce(records []int64) {
	if s.missing.Load() > 0 && !s.gaveUp() {
		s.start(s.needed(len(records), func(i int) int64 { return records[i] }))
	}
}

// partGatherer gathers from the parts of a set, or from units in memory.
type partGatherer struct {
	set      *partSet
	stored   source.Gatherer
	decoding source.Gatherer
}

func (s *partSet) gatherer(parts []source.Part, decoding source.Gatherer) (source.Gatherer, error) {
	stored, err := s.table.Gatherer(parts)
	return &partGatherer{s, stored, decoding}, err
}

// Gather implements source.Gatherer.
func (g *partGatherer) Gather(ctx context.Context, draw source.Draw, records []int64, jobs []source.Job) error {
	if err := g.set.table.Calls.Enter(); err != nil {
		return err
	}
	defer g.set.table.Calls.Leave()
	ready, err := g.set.ready(ctx, len(records), func(i int) int64 { return records[i] })
	switch {
	case err != nil:
		return err
	case ready:
		return g.stored.Gather(ctx, draw, records, jobs)
	}
	return g.decoding.Gather(ctx, draw, records, jobs)
}

// Ahead implements source.Gatherer.
func (g *partGatherer) Ahead(draw source.Draw, records []int64) {
	switch g.set.announce(records); {
	case g.set.missing.Load() == 0:
		g.stored.Ahead(draw, records)
	case g.set.gaveUp():
		g.decoding.Ahead(draw, records)
	}
}

// Close implements source.Gatherer.
func (g *partGatherer) Close() error { return errors.Join(g.stored.Close(), g.decoding.Close()) }

// partReader reads from the parts of a set, or from units in memory. It makes parts only
// after records were announced, as a loader does: a program that looks at a few rows makes
// none.
type partReader struct {
	set              *partSet
	stored, decoding source.Reader
	announced        atomic.Bool
}

func (s *partSet) reader(fields []int, decoding source.Reader) (source.Reader, error) {
	stored, err := s.table.Reader(fields)
	return &partReader{set: s, stored: stored, decoding: decoding}, err
}

// Read implements source.Reader.
func (r *partReader) Read(ctx context.Context, draw source.Draw, spans []source.Span, use func() error) error {
	if err := r.set.table.Calls.Enter(); err != nil {
		return err
	}
	defer r.set.table.Calls.Leave()
	record := func(i int) int64 { return spans[i].Record }
	ready := r.set.missing.Load() == 0 || len(r.set.needed(len(spans), record)) == 0
	if !ready && r.announced.Load() {
		var err error
		if ready, err = r.set.ready(ctx, len(spans), record); err != nil {
			return err
		}
	}
	if ready {
		return r.stored.Read(ctx, draw, spans, use)
	}
	return r.decoding.Read(ctx, draw, spans, use)
}

// Lengths implements source.Reader. It makes no parts, because it needs no values.
func (r *partReader) Lengths(ctx context.Context, draw source.Draw, field int, records, out []int64) error {
	if r.set.missing.Load() == 0 {
		return r.stored.Lengths(ctx, draw, field, records, out)
	}
	return r.decoding.Lengths(ctx, draw, field, records, out)
}

// Ahead implements source.Reader.
func (r *partReader) Ahead(draw source.Draw, records []int64) {
	r.announced.Store(true)
	switch r.set.announce(records); {
	case r.set.missing.Load() == 0:
		r.stored.Ahead(draw, records)
	case r.set.gaveUp():
		r.decoding.Ahead(draw, records)
	}
}

// Close implements source.Reader.
func (r *partReader) Close() error { return errors.Join(r.stored.Close(), r.decoding.Close()) }
