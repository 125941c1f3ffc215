package arrowmeta_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// tfRecord returns a TFRecord file with one record.
func tfRecord(record string) []byte {
	masked := func(data []byte) uint32 {
		crc := crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))
		return (crc>>15 | crc<<17) + 0xa282ead8
	}
	length := binary.LittleEndian.AppendUint64(nil, uint64(len(record)))
	file := append(binary.LittleEndian.AppendUint32(length, masked(length)), record...)
	return binary.LittleEndian.AppendUint32(file, masked([]byte(record)))
}

// TestForeign has the whole message for files of other formats.
func TestForeign(t *testing.T) {
	const (
		pyarrow = "write an Arrow IPC file from it, with pyarrow: import pyarrow.feather, pyarrow."
		out     = `, "out.arrow", compression="uncompressed")`
		csv     = `; if it is a table: ` + pyarrow + `csv; pyarrow.feather.write_feather(pyarrow.csv.read_csv("in.csv")` + out + "; other text must become numbers first, such as token ids"
		json    = "; mf.open reads it if each line is one object: write it so"
		rewrite = "write it as an Arrow IPC file, for example with pyarrow.ipc.new_file"
		unpack  = "; unpack it first: rows are read in any order, which a packed file does not allow"
		weights = "as weights: mf.open_arrays"
	)
	tar := func(magic string) []byte {
		header := make([]byte, 1024)
		copy(header, "000000.cls")
		copy(header[257:], magic)
		return header
	}
	member := func(name string) []byte {
		header := make([]byte, 30, 64)
		copy(header, "PK\x03\x04")
		binary.LittleEndian.PutUint16(header[26:], uint16(len(name)))
		return append(append(header, name...), "more"...)
	}
	for _, c := range []struct {
		name string
		data []byte
		code status.Code
		want string
	}{
		{"empty", nil, status.DataLoss, "is empty; whatever wrote or downloaded it did not finish: make it again"},
		{"zeros", make([]byte, 1000), status.DataLoss, `begins with "` + strings.Repeat(`\x00`, 32) + `"; ` + rewrite},
		{"the magic alone", []byte("ARROW1"), status.DataLoss, `begins with "ARROW1"; ` + rewrite},
		{"bytes after text", []byte("text\x00"), status.DataLoss, `begins with "text\x00"; ` + rewrite},

		{"csv", []byte("a,b,c\n1,2,3\n4,5,6\n"), status.Unsupported, `is text and begins with "a,b,c\n1,2,3\n4,5,6\n"` + csv},
		{"tsv", []byte("a\tb\r\n"), status.Unsupported, `is text and begins with "a\tb\r\n"` + csv},
		{"long text", []byte(strings.Repeat("é", 500)), status.Unsupported, `is text and begins with "` + strings.Repeat("é", 16) + `"` + csv},
		{"text that is cut in a character", []byte("x" + strings.Repeat("é", 500)), status.Unsupported, `is text and begins with "x` + strings.Repeat("é", 15) + `\xc3"` + csv},
		{"objects", []byte("{\"x\": 1}\n{\"x\": 2}\n"), status.Unsupported, "is JSON" + json},
		{"a list after a byte order mark", []byte("\ufeff \n[1, 2]"), status.Unsupported, "is JSON; if it is a list of objects: mf.from_arrow(pyarrow.Table.from_pylist(json.load(open(\"in.json\"))))"},
		{"UTF-16", []byte("\xff\xfea\x00,\x00b\x00"), status.Unsupported, "is text in UTF-16; if it is a table: write an Arrow IPC file from it, with pyarrow: import pyarrow.feather, pyarrow.csv; pyarrow.feather.write_feather(pyarrow.csv.read_csv(\"in.csv\", pyarrow.csv.ReadOptions(encoding=\"utf-16\")), \"out.arrow\", compression=\"uncompressed\")"},
		{"orc", []byte("ORC and more bytes"), status.Unsupported, "is an ORC file; " + pyarrow + `orc; pyarrow.feather.write_feather(pyarrow.orc.read_table("in.orc")` + out},
		{"npz", member("x.npy"), status.Unsupported, `is an archive of NumPy files; as records: mf.from_arrays(dict(numpy.load("in.npz"))); ` + weights},
		{"zip", member("x.csv"), status.Unsupported, "is a ZIP archive" + unpack},
		{"a short zip", []byte("PK\x03\x04"), status.Unsupported, "is a ZIP archive" + unpack},
		{"safetensors", []byte("\x38\x00\x00\x00\x00\x00\x00\x00" + `{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}  ` + "12345678"), status.Unsupported,
			"is a safetensors file; " + weights + `; as records: mf.from_arrays(safetensors.numpy.load_file("in.safetensors"))`},
		{"tfrecord", tfRecord("ten bytes!"), status.Unsupported, "is a TFRecord file; mf.open reads it"},
		{"tfrecord with a length as in a stream", tfRecord(strings.Repeat("long", 40)), status.Unsupported, "is a TFRecord file; mf.open reads it"},
		{"arrayrecord", []byte("\x83\xaf\x70\xd1\x0d\x88\x4a\x3f\x00\x00\x00\x00\x00\x00\x00\x00\x40\x00\x00\x00\x00\x00\x00\x00"), status.Unsupported,
			"is an ArrayRecord file; decode its records once with array_record, and write the rows as an Arrow IPC file, for example with pyarrow.ipc.new_file"},
		{"tar of POSIX", tar("ustar\x0000"), status.Unsupported, "is a tar archive; mf.open reads it if its name ends in .tar, and if it has records of WebDataset"},
		{"tar of GNU", tar("ustar  \x00"), status.Unsupported, "is a tar archive; mf.open reads it if its name ends in .tar, and if it has records of WebDataset"},
		{"hdf5", []byte("\x89HDF\r\n\x1a\n"), status.Unsupported, `is an HDF5 file; if it fits into memory: mf.from_arrays({"x": h5py.File("in.h5")["x"][:]}); if not, ` + rewrite},
		{"gzip", []byte("\x1f\x8b\x08"), status.Unsupported, "is compressed with gzip" + unpack},
	} {
		_, err := arrowmeta.Read(bytes.NewReader(c.data), int64(len(c.data)))
		if err == nil {
			t.Errorf("%s: accepted", c.name)
			continue
		}
		if got, want := err.Error(), "arrowmeta: this is not an Arrow IPC or Parquet file: it "+c.want; got != want || status.CodeOf(err) != c.code {
			t.Errorf("%s:\n got %v %s\nwant %v %s", c.name, status.CodeOf(err), got, c.code, want)
		}
	}
}
