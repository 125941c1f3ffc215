package storage

import (
	"cmp"
	"context"
	"io"
	"sync/atomic"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/core/status"
)

// object is an open file. It implements blob.Blob.
type object struct {
	opener *Opener
	entry
	changed atomic.Pointer[error] // why its content is lost; nil as long as it is not
}

func (o *object) Name() string     { return o.entry.Name }
func (o *object) Size() int64      { return o.entry.Size }
func (o *object) Identity() string { return cmp.Or(o.entry.Identity, o.entry.Name) }
func (o *object) Close() error     { return nil }

// Check implements blob.Blob. It makes no request: each read is a check.
func (o *object) Check() error {
	if err := o.changed.Load(); err != nil {
		return *err
	}
	return nil
}

// ReadAt implements blob.Blob. It divides long reads into blocks that are read side by side.
func (o *object) ReadAt(ctx context.Context, p []byte, offset int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, blob.ReadError(o.entry.Name, err)
	}
	if offset < 0 {
		return 0, failed(o.entry.Name, status.Errorf(status.InvalidArgument, "storage", "a read from byte %d on", offset))
	}
	want := p[:max(min(int64(len(p)), o.entry.Size-offset), 0)]
	err := blob.Far.ReadPieces(ctx, want, offset, int(blob.Far.Size), o.block)
	switch {
	case err != nil:
		return 0, err
	case len(want) < len(p):
		return len(want), io.EOF
	}
	return len(want), nil
}

// block reads bytes by one request.
func (o *object) block(ctx context.Context, p []byte, offset int64) error {
	o.opener.planned.Add(int64(len(p)))
	r := Request{What: "read", Name: o.entry.Name, Version: o.entry.Version, Offset: offset, Size: int64(len(p))}
	err := o.opener.request(ctx, r, func(answer []byte) error {
		o.opener.read.Add(int64(len(answer)))
		if len(answer) != len(p) {
			return status.Errorf(status.DataLoss, "storage", "%d bytes came for the %d bytes from %d on", len(answer), len(p), offset).
				WithHint("do not change files while they are read, and report it to the authors of the file system otherwise")
		}
		copy(p, answer)
		return nil
	})
	if status.CodeOf(err) == status.DataLoss {
		o.changed.CompareAndSwap(nil, &err)
	}
	return err
}

// versioned is a file with an identity. It implements blob.Versioned.
type versioned struct{ *object }

// Version implements blob.Versioned.
func (v versioned) Version() string { return v.entry.Identity }

// stamped is a file with a stamp. It implements blob.Stamped.
type stamped struct{ versioned }

// Stamp implements blob.Stamped.
func (s stamped) Stamp() string { return s.entry.Stamp }
