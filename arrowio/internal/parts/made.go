package parts

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/diskcache"
	"github.com/meshfeed/meshfeed/arrowio/internal/local"
	"github.com/meshfeed/meshfeed/arrowio/internal/part"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// Made keeps in the folder what is made of a whole file when it is opened: the text of a compressed
// file, and where its lines or records are. All processes of a host make it once. Without a folder it is kept in
// memory, up to MaxMade bytes for all files.
type Made struct {
	Options
	folder func() (*diskcache.Folder, error)
	held   atomic.Int64
}

// MaxMade bounds what is kept in memory.
const MaxMade = 256 << 20

// NewMade returns where the things are kept that are made of the files of a dataset.
func NewMade(o Options) *Made { return &Made{Options: o, folder: sync.OnceValues(o.folder)} }

// Bytes are bytes that were made of a file.
type Bytes struct {
	io.ReaderAt
	Size  int64
	Close func() error
}

// Of returns the bytes that write makes of a file. What names them, with the version of their
// making. An error of write comes back as it is.
func (m *Made) Of(ctx context.Context, b blob.Blob, what string, write func(w io.Writer) error) (Bytes, error) {
	versioned, ok := b.(blob.Versioned)
	if !ok || m.Path == "memory" {
		return m.inMemory(nil, write)
	}
	folder, err := m.folder()
	if err != nil && !m.auto() {
		return Bytes{}, err
	}
	if err != nil {
		return m.inMemory(err, write)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q of %s", what, versioned.Version()))
	e := entry{folder, hex.EncodeToString(sum[:20]), wording.Plain(m.Opener.Full(b.Name())) + "\n" + what}
	for {
		if found, ok, err := e.find(); ok || err != nil {
			return found, err
		}
		made, ok, problem, err := e.make(write)
		switch {
		case ok || err != nil:
			return made, err
		case problem != nil:
			return m.inMemory(problem, write)
		}
		select { // another process makes it
		case <-time.After(othersAfter):
		case <-ctx.Done():
			return Bytes{}, status.Ended("arrowio", "the opening", ctx.Err())
		}
	}
}

// entry is an entry of the folder with bytes.
type entry struct {
	folder     *diskcache.Folder
	key, about string
}

// find returns the bytes of the entry. It removes a damaged entry.
func (e entry) find() (found Bytes, ok bool, err error) {
	file, err := e.folder.Find(e.key)
	if file == nil || err != nil {
		return found, false, err
	}
	b, err := local.Sealed(file.Name(), file)
	if err != nil {
		return found, false, err
	}
	size, err := part.Bytes(file, b.Size(), e.key)
	if err == nil {
		return Bytes{file, size, b.Close}, true, nil
	}
	_ = b.Close()
	if errors.Is(err, part.ErrDamaged) {
		err = e.folder.Remove(e.key)
	}
	return found, false, err
}

// make writes the entry, and returns its bytes. Without an error, ok is false if another process is
// writing it. A problem is an error of the folder.
func (e entry) make(write func(w io.Writer) error) (made Bytes, ok bool, problem, err error) {
	to, problem := e.folder.Create(e.key)
	if to == nil || problem != nil {
		return made, false, problem, nil
	}
	defer func() {
		if !ok {
			to.Abort()
		}
	}()
	w := &observed{to: part.NewWriter(to)}
	err = write(w)
	switch {
	case w.problem != nil:
		return made, false, w.problem, nil
	case err != nil:
		return made, false, nil, err
	}
	if problem := w.to.Finish(e.key, e.about); problem != nil {
		return made, false, problem, nil
	}
	file, problem := to.Commit()
	if problem != nil {
		return made, false, problem, nil
	}
	return Bytes{file, w.bytes, file.Close}, true, nil, nil
}

// observed counts bytes, and tells errors of the folder from errors of what writes to it.
type observed struct {
	to      *part.Writer
	bytes   int64
	problem error
}

// Write implements io.Writer.
func (w *observed) Write(p []byte) (int, error) {
	if _, w.problem = w.to.Write(p); w.problem != nil {
		return 0, w.problem
	}
	w.bytes += int64(len(p))
	return len(p), nil
}

// inMemory keeps the bytes in memory. Problem is why the folder cannot, or nil.
func (m *Made) inMemory(problem error, write func(w io.Writer) error) (Bytes, error) {
	w := &bounded{of: m, problem: problem}
	if err := write(w); err != nil {
		m.held.Add(-int64(w.buffer.Len()))
		return Bytes{}, err
	}
	return Bytes{bytes.NewReader(w.buffer.Bytes()), int64(w.buffer.Len()), func() error { return nil }}, nil
}

// bounded is a buffer that counts its bytes among those that are kept in memory.
type bounded struct {
	of      *Made
	problem error
	buffer  bytes.Buffer
}

// Write implements io.Writer.
func (w *bounded) Write(p []byte) (int, error) {
	if w.of.held.Add(int64(len(p))) > MaxMade {
		w.of.held.Add(-int64(len(p)))
		e := status.Errorf(status.ResourceExhausted, "arrowio", "fetched and decompressed files may take %d bytes of memory together, and they have more", MaxMade)
		if reason, ok := errors.AsType[*status.Error](w.problem); ok {
			e.Msg, e.Err = e.Msg+"; "+reason.Msg, reason
		}
		return 0, e.WithHint("choose a folder for them (cache=; Go: Cache), with room for all of the text (cache_bytes; Go: CacheBytes), or decompress the files")
	}
	return w.buffer.Write(p)
}
