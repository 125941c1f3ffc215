package tensors

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/npy"
	"github.com/meshfeed/meshfeed/core/status"
)

const maxMember = 1 << 16 // arrays of an .npz file

// readNPY reads the header of the .npy data at the bytes [start, stop) of a file.
func readNPY(ctx context.Context, f blob.Blob, start, stop int64, name string) (array, error) {
	h, err := npy.Read(ctx, f, start, stop, name)
	e, known := errors.AsType[*status.Error](err)
	switch {
	case known && e.Op == "npy":
		return array{}, fault(e.Code, f, "%s", e.Msg).WithHint("%s", e.Hint)
	case err != nil:
		return array{}, unread(f, err, stop-start, start)
	}
	return array{
		name: name, typ: h.Type, shape: h.Shape, offset: h.Start, bytes: h.Bytes, skipped: h.Skipped, stored: h.Stored,
		sum: checksum{head: crc32.ChecksumIEEE(h.Text)},
	}, nil
}

// readNPZ lists the arrays of a zip file that numpy.savez wrote.
func readNPZ(ctx context.Context, f blob.Blob) ([]array, error) {
	archive, err := zip.NewReader(blob.Reader(ctx, f), f.Size())
	if err != nil {
		return nil, damaged(f, "the zip directory cannot be read: %v", err)
	}
	if len(archive.File) > maxMember {
		return nil, unsupported(f, "there are %d members, but at most %d are read", len(archive.File), maxMember).WithHint(smaller)
	}
	var arrays []array
	names := map[string]bool{}
	for _, member := range archive.File {
		name, isArray := strings.CutSuffix(member.Name, ".npy")
		if !isArray {
			continue
		}
		if names[name] {
			return nil, damaged(f, "the array %q is there twice", name)
		}
		names[name] = true
		a, err := readMember(ctx, f, member, name)
		if err != nil {
			return nil, err
		}
		arrays = append(arrays, a)
	}
	if len(arrays) == 0 && len(archive.File) > 0 {
		return nil, unsupported(f, "this zip file has no .npy member; its first member is %q", archive.File[0].Name).
			WithHint("write weights of torch.save with safetensors.torch.save_file")
	}
	return arrays, checkOverlap(f, arrays)
}

// The flags of a member in the zip format. Known are those that do not change the stored bytes: how
// hard the compression tried, sizes after the data, and names in UTF-8.
const (
	zipEncrypted = 1
	zipKnown     = 3<<1 | 1<<3 | 1<<11
)

// readMember reads the header of a member. Only members that are stored as they are
// can be read in parts.
func readMember(ctx context.Context, f blob.Blob, member *zip.File, name string) (array, error) {
	if unknown := member.Flags &^ (zipEncrypted | zipKnown); unknown != 0 {
		return array{name: name, stored: "zip", skipped: fmt.Sprintf("it has the flags %#x of zip, which are not known here; write the file with numpy.savez", unknown)}, nil
	}
	if member.Flags&zipEncrypted != 0 {
		return array{name: name, stored: "zip", skipped: "it is encrypted; write the file with numpy.savez"}, nil
	}
	if member.Method != zip.Store {
		return array{name: name, stored: "zip", skipped: "it is compressed; write the file with numpy.savez"}, nil
	}
	start, err := member.DataOffset()
	if err != nil {
		return array{}, damaged(f, "the member %q cannot be read: %v", member.Name, err)
	}
	length := member.UncompressedSize64
	if start > f.Size() || length > uint64(f.Size()-start) || length != member.CompressedSize64 {
		return array{}, damaged(f, "the member %q has %d bytes at byte %d of %d", member.Name, length, start, f.Size())
	}
	a, err := readNPY(ctx, f, start, start+int64(length), name)
	a.sum.has, a.sum.member = true, member.CRC32
	return a, err
}
