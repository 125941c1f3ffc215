package arrowmeta

import (
	"io"
	"strings"

	"github.com/meshfeed/meshfeed/core/status"
)

// otherFormats lists the first bytes of other formats, and the advice in the error.
var otherFormats = []struct{ start, name, remedy string }{
	{"PAR1", "a Parquet file", rewrite},
	{"FEA1", "a Feather file of version 1", rewrite},
	{"ORC", "an ORC file", rewrite},
	{"Obj\x01", "an Avro file", rewrite},
	{"\x93NUMPY", "a NumPy file", weights},
	{"\x89HDF", "an HDF5 file", rewrite},
	{"\x1f\x8b", "compressed with gzip", unpack},
	{"\x28\xb5\x2f\xfd", "compressed with zstd", unpack},
	{"\x04\x22\x4d\x18", "compressed with lz4", unpack},
	{"\xfd7zXZ", "compressed with xz", unpack},
	{"BZh", "compressed with bzip2", unpack},
	{"PK\x03\x04", "a ZIP archive", unpack},
	{"<", "a page of HTML or XML", "a download that fails, or needs a login, leaves such a page: download the file again"},
	{"{", "JSON", rewrite},
	{"version https://git-lfs.", "a pointer of Git LFS", "fetch what it points to: git lfs pull"},
}

const (
	rewrite = "write it as an Arrow IPC file, for example with pyarrow.ipc.new_file"
	weights = "mf.open_arrays opens it as weights; for records, " + rewrite
	unpack  = "unpack it first: rows are read in any order, which a packed file does not allow"
	again   = "whatever wrote or downloaded it did not finish: make it again"
)

// isSafetensors reports whether data that begin with head are a file of safetensors:
// the length of a header in 8 bytes, and a header in JSON. As a stream, it would have
// metadata that begin with the offset 0, which is not valid.
func isSafetensors(head []byte) bool {
	return len(head) > 8 && string(head[4:9]) == "\x00\x00\x00\x00{"
}

// headBytes is the number of first bytes that distinguish the formats.
const headBytes = 32

// Foreign returns the error of [Read] for data that are neither an Arrow IPC file
// nor a stream. Its attribute "format" names the format that was found instead.
func Foreign(r io.ReaderAt, size int64) error {
	w := window{r: r, size: size}
	head, err := w.bytes(0, int(min(size, headBytes)), 0)
	if err != nil {
		return position{"start", -1, 0}.unread(err)
	}
	const msg = "this is no Arrow IPC file or stream: it "
	if len(head) == 0 {
		return status.New(status.DataLoss, "arrowmeta", msg+"is empty").WithHint(again).With("offset", int64(0)).With("format", "empty")
	}
	unsupported := func(name, remedy string) error {
		return status.New(status.Unsupported, "arrowmeta", msg+"is "+name).WithHint("%s", remedy).
			With("offset", int64(0)).With("format", name)
	}
	if isSafetensors(head) {
		return unsupported("a safetensors file", weights)
	}
	for _, k := range otherFormats {
		if strings.HasPrefix(string(head), k.start) {
			return unsupported(k.name, k.remedy)
		}
	}
	return status.Errorf(status.DataLoss, "arrowmeta", msg+"begins with %q", head).WithHint(rewrite).With("offset", int64(0)).With("format", "unknown")
}
