package arrowmeta

import (
	"encoding/binary"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/meshfeed/meshfeed/core/status"
)

// otherFormats lists how other formats begin, and the advice in the error.
var otherFormats = []struct {
	is           func(head string) bool
	name, remedy string
}{
	{isSafetensors, "a safetensors file", weights + `; as records: mf.from_arrays(safetensors.numpy.load_file("in.safetensors"))`},
	{isTFRecord, "a TFRecord file", "mf.open reads it"},
	{starts("\x83\xaf\x70\xd1\x0d\x88\x4a\x3f"), "an ArrayRecord file", records},
	{isTar, "a tar archive", "mf.open reads it if its name ends in .tar, and if it has records of WebDataset"},
	{isNPZ, "an archive of NumPy files", `as records: mf.from_arrays(dict(numpy.load("in.npz"))); ` + weights},
	{starts("FEA1"), "a Feather file of version 1", rewrite},
	{starts("ORC"), "an ORC file", with("orc", `read_table("in.orc")`)},
	{starts("Obj\x01"), "an Avro file", rewrite},
	{starts("\x89HDF"), "an HDF5 file", `if it fits into memory: mf.from_arrays({"x": h5py.File("in.h5")["x"][:]}); if not, ` + rewrite},
	{starts("\x1f\x8b"), "compressed with gzip", unpack},
	{starts("\x28\xb5\x2f\xfd"), "compressed with zstd", unpack},
	{starts("\x04\x22\x4d\x18"), "compressed with lz4", unpack},
	{starts("\xfd7zXZ"), "compressed with xz", unpack},
	{starts("BZh"), "compressed with bzip2", unpack},
	{starts("PK\x03\x04"), "a ZIP archive", unpack},
	{starts("<"), "a page of HTML or XML", "a download that fails, or needs a login, leaves such a page: download the file again"},
	{starts("{"), "JSON", objects},
	{starts("["), "JSON", `if it is a list of objects: mf.from_arrow(pyarrow.Table.from_pylist(json.load(open("in.json"))))`},
	{starts("version https://git-lfs."), "a pointer of Git LFS", "fetch what it points to: git lfs pull"},
	{isUTF16, "text in UTF-16", "if it is a table: " + with("csv", `read_csv("in.csv", pyarrow.csv.ReadOptions(encoding="utf-16"))`)},
	{isText, "text", "if it is a table: " + with("csv", `read_csv("in.csv")`) + "; other text must become numbers first, such as token ids"},
}

const (
	objects = "mf.open reads it if each line is one object: write it so"
	rewrite = "write it as an Arrow IPC file, for example with pyarrow.ipc.new_file"
	weights = "as weights: mf.open_arrays"
	records = "decode its records once with array_record, and write the rows as an Arrow IPC file, for example with pyarrow.ipc.new_file"
	unpack  = "unpack it first: rows are read in any order, which a packed file does not allow"
	again   = "whatever wrote or downloaded it did not finish: make it again"
)

// with returns the advice to write an Arrow IPC file from a table, which a function of a
// module of pyarrow reads.
func with(module, read string) string {
	return "write an Arrow IPC file from it, with pyarrow: import pyarrow.feather, pyarrow." + module +
		"; pyarrow.feather.write_feather(pyarrow." + module + "." + read + `, "out.arrow", compression="uncompressed")`
}

// starts returns a function that reports whether data begin with some bytes, after a byte
// order mark and white space.
func starts(prefix string) func(head string) bool {
	return func(head string) bool {
		return strings.HasPrefix(strings.TrimLeft(strings.TrimPrefix(head, "\ufeff"), "\t\n\r "), prefix)
	}
}

// isSafetensors reports whether data that begin with head are a file of safetensors:
// the length of a header in 8 bytes, and a header in JSON. As a stream, it would have
// metadata that begin with the offset 0, which is not valid.
func isSafetensors(head string) bool {
	return len(head) > 8 && head[4:9] == "\x00\x00\x00\x00{"
}

// isTFRecord reports whether data that begin with head are a TFRecord file: the length of
// a record in 8 bytes, and their checksum. It is a CRC-32C that is rotated by 15 bits, plus
// a constant ("TFRecord and tf.train.Example", TensorFlow).
func isTFRecord(head string) bool {
	if len(head) < 12 {
		return false
	}
	crc := ^uint32(0)
	for _, b := range []byte(head[:8]) {
		crc ^= uint32(b)
		for range 8 {
			crc = crc>>1 ^ 0x82f63b78&-(crc&1)
		}
	}
	crc = ^crc
	return crc>>15|crc<<17 == binary.LittleEndian.Uint32([]byte(head[8:12]))-0xa282ead8
}

// isTar reports whether data that begin with head are a tar archive of POSIX or GNU.
func isTar(head string) bool {
	return len(head) >= 262 && head[257:262] == "ustar"
}

// isNPZ reports whether data that begin with head are a ZIP archive with a NumPy file as
// its first member.
func isNPZ(head string) bool {
	if len(head) < 30 || head[:4] != "PK\x03\x04" {
		return false
	}
	name := head[30:]
	return strings.HasSuffix(name[:min(len(name), int(head[26])|int(head[27])<<8)], ".npy")
}

// isUTF16 reports whether data that begin with head have the byte order mark of UTF-16.
func isUTF16(head string) bool {
	return strings.HasPrefix(head, "\xff\xfe") || strings.HasPrefix(head, "\xfe\xff")
}

// isText reports whether head is text in UTF-8. The last character may be cut. An Arrow
// file that ends after its first bytes is not text.
func isText(head string) bool {
	for len(head) > 0 && !strings.HasPrefix(head, Magic) {
		r, n := utf8.DecodeRuneInString(head)
		if r == utf8.RuneError && n == 1 {
			return !utf8.FullRuneInString(head)
		}
		if unicode.IsControl(r) && !strings.ContainsRune("\t\n\f\r", r) {
			return false
		}
		head = head[n:]
	}
	return head == ""
}

const (
	headBytes  = 512 // the first bytes, which distinguish the formats
	shownBytes = 32  // those in a message
)

// Foreign returns the error of [Read] for data that are neither an Arrow IPC file
// nor a stream, nor a Parquet file. Its attribute "format" names the format that was found instead.
func Foreign(r io.ReaderAt, size int64) error {
	w := window{r: r, size: size}
	first, err := w.bytes(0, int(min(size, headBytes)), 0)
	if err != nil {
		return position{"start", -1, 0}.unread(err)
	}
	head := string(first)
	refuse := func(code status.Code, format, found, remedy string) error {
		return status.New(code, "arrowmeta", "this is not an Arrow IPC or Parquet file: it "+found).WithHint("%s", remedy).
			With("offset", int64(0)).With("format", format)
	}
	if head == "" {
		return refuse(status.DataLoss, "empty", "is empty", again)
	}
	begins := "begins with " + strconv.Quote(head[:min(len(head), shownBytes)])
	for _, k := range otherFormats {
		switch {
		case !k.is(head):
		case k.name == "text":
			return refuse(status.Unsupported, k.name, "is text and "+begins, k.remedy)
		default:
			return refuse(status.Unsupported, k.name, "is "+k.name, k.remedy)
		}
	}
	return refuse(status.DataLoss, "unknown", begins, rewrite)
}
