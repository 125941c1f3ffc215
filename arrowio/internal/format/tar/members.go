package tar

import (
	"archive/tar"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/core/status"
)

// Member is a file in an archive.
type Member struct {
	Name         string
	Offset, Size int64
	Short        []byte // its bytes, if a view holds as many
}

// inView is the most bytes of a value that its view holds itself.
const inView = 12

// Members returns the files of an archive. It reads their headers, and the bytes of short ones.
func Members(ctx context.Context, b blob.Blob) (list []Member, err error) {
	at := io.NewSectionReader(blob.Reader(ctx, b), 0, b.Size())
	r := tar.NewReader(at)
	for {
		h, err := r.Next()
		if err == io.EOF {
			return list, nil
		}
		if err != nil {
			return nil, damaged(len(list), err)
		}
		if h.Typeflag != tar.TypeReg {
			if h.Typeflag == tar.TypeGNUSparse {
				return nil, refused(h.Name, "is stored as a sparse file", "write the archive without --sparse")
			}
			continue
		}
		if h.PAXRecords["GNU.sparse.major"] != "" || h.PAXRecords["GNU.sparse.map"] != "" {
			return nil, refused(h.Name, "is stored as a sparse file", "write the archive without --sparse")
		}
		m := Member{Name: h.Name, Size: h.Size}
		if m.Offset, err = at.Seek(0, io.SeekCurrent); err != nil {
			return nil, err
		}
		if m.Size > b.Size()-m.Offset {
			return nil, damaged(len(list), io.ErrUnexpectedEOF)
		}
		if m.Size <= inView {
			if m.Short, err = io.ReadAll(r); err != nil {
				return nil, damaged(len(list), err)
			}
		}
		list = append(list, m)
	}
}

func damaged(after int, err error) error {
	if _, known := errors.AsType[*status.Error](err); known {
		return err
	}
	return status.Errorf(status.DataLoss, "arrowio", "the archive is damaged or cut short after %d files: %w", after, err).
		WithHint("write or copy it again")
}

func refused(name, why, hint string) error {
	return status.Errorf(status.Unsupported, "arrowio", "the file %q %s", name, why).WithHint("%s", hint)
}

// IndexName names the list of members in a cache. It changes with what Members returns.
const IndexName = "members 1"

// AppendIndex appends members to b, to keep them.
func AppendIndex(b []byte, list []Member) []byte {
	for _, m := range list {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(m.Offset)), uint64(m.Size))
		b = append(binary.AppendUvarint(b, uint64(len(m.Name))), m.Name...)
		b = append(b, m.Short...)
	}
	return b
}

// ReadIndex returns the members of an archive of size bytes. ok is false if they do not fit it.
func ReadIndex(b []byte, size int64) (list []Member, ok bool) {
	number := func(most int64) int64 {
		n, used := binary.Uvarint(b)
		if used <= 0 || n > uint64(max(most, 0)) {
			b = nil
			return -1
		}
		b = b[used:]
		return int64(n)
	}
	bytes := func(n int64) []byte {
		out := b[:n:n]
		b = b[n:]
		return out
	}
	for len(b) > 0 {
		m := Member{Offset: number(size)}
		m.Size = number(size - m.Offset)
		n := number(int64(len(b)))
		if m.Offset < 0 || m.Size < 0 || n < 0 || n > int64(len(b)) {
			return nil, false
		}
		m.Name = string(bytes(n))
		if m.Size <= inView {
			if m.Size > int64(len(b)) {
				return nil, false
			}
			m.Short = bytes(m.Size)
		}
		list = append(list, m)
	}
	return list, true
}

// split divides the name of a file into the key of its record and the name of its field: at the first
// dot after the last slash. Other files, such as hidden ones, belong to no record.
func split(name string) (key, field string, ok bool) {
	base := strings.LastIndexByte(name, '/') + 1
	dot := strings.IndexByte(name[base:], '.')
	if dot <= 0 || base+dot+1 == len(name) || strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__") {
		return "", "", false
	}
	return name[:base+dot], strings.ToLower(name[base+dot+1:]), utf8.ValidString(name)
}
