//go:build unix

package arrowio_test

import (
	"bytes"
	"compress/gzip"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/status"
)

// badPaths writes everything that a wrong path may lead to, and changes into its
// folder.
func badPaths(t *testing.T) {
	number := column(t, "x", arrow.PrimitiveTypes.Int64, "[1]")
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(number); err != nil {
		t.Fatal(err)
	}
	w.Close()
	folder(t, map[string][]byte{
		"x.arrow": number, "float.arrow": column(t, "x", arrow.PrimitiveTypes.Float32, "[1]"),
		"y.arrow": column(t, "y", arrow.PrimitiveTypes.Int64, "[1]"),

		"p.parquet": []byte("PAR1 and more of it PAR1"), "empty.arrow": nil, "text.csv": []byte("name,age\nx,1\n"),
		"x.arrow.gz": packed.Bytes(), "page.arrow": []byte("<!DOCTYPE html><title>Sign in"),
		"lfs.arrow": []byte("version https://git-lfs.github.com/spec/v1\noid sha256:1\n"), "cut.arrow": number[:len(number)-20],

		"none/readme.txt": nil, "many/a.csv": nil, "many/b.csv": nil, "many/c.csv": nil, "many/d.csv": nil, "parquet/key/a.parquet": nil, "short.parquet": []byte("PAR1"), "secret.parquet": []byte("PARE and more of it PARE"), "deep/sub/x.arrow": number,
		"new.zarr/zarr.json": nil, "old.zarr/.zarray": nil, "group.zarr/.zgroup": nil,
		"spark/a.arrow": number, "spark/b.arrow/p.arrow": number, "keys/x.arrow": number, "keys/a=1/b=1/x.arrow": number,
		"inner/x.arrow": number, "inner/sub/a=1/x.arrow": number,
		"both/x.arrow": number, "both/sub/y.arrow": number, "fine/x.arrow": number, "fine/.cache/y.arrow": number, "fine/notes/n.txt": nil,
		"left/_x.arrow": number, "bare/part-0": number, "bare/README": []byte("Read me."), "splits/train/x.arrow": number, "splits/test/x.arrow": number, "mixed/x.arrow": number, "mixed/readme.txt": []byte("Read me."),

		"hf/state.json":        []byte(`{"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}`),
		"hf/dataset_info.json": []byte("{}"), "hf/data-00000-of-00001.arrow": number,
		"dict/dataset_dict.json": []byte(`{"splits": ["train", "test"]}`), "dict/train/state.json": []byte("{}"),
		"mapped/state.json":  []byte(`{"_data_files": [{"filename": "a.arrow"}], "_indices_data_files": [{"filename": "i.arrow"}]}`),
		"skipped/state.json": []byte(`{"_data_files": [{"filename": "a.arrow", "skip": 1, "take": 1}]}`),
		"empty/state.json":   []byte(`{"_data_files": [{"filename": "a.arrow", "skip": 0, "take": 0}]}`),
		"part/state.json":    []byte(`{"_data_files": [{"filename": "a.arrow", "skip": 0, "take": 2}]}`), "part/a.arrow": number,
		"escape/state.json": []byte(`{"_data_files": [{"filename": "../x.arrow"}]}`),
		"broken/state.json": []byte(`{"_data_files": [`),
		"list/state.json":   []byte(`[]`), "words/state.json": []byte(`{"_data_files": ["x.arrow"]}`), "norecords/state.json": []byte(`{"_data_files": []}`),
		"nosplits/dataset_dict.json": []byte(`{"splits": []}`), "phrase/dataset_dict.json": []byte(`{"splits": "train"}`), "foreign/state.json": []byte(`{"step": 7}`), "foreign/x.arrow": number,
		"gone/state.json": []byte(`{"_data_files": [{"filename": "gone.arrow"}]}`),
	})
	for name, target := range map[string]string{"loop.arrow": "loop.arrow", "dangling.arrow": "blobs/1234"} {
		if err := os.Symlink(target, name); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"void", "pipes"} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo("pipes/p.arrow", 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestOpenRefused has the whole message for everything that cannot be opened. HERE
// stands for the working directory.
func TestOpenRefused(t *testing.T) {
	badPaths(t)
	noArrow := ": the directory has no file of Arrow or Parquet (" + arrowio.Suffixes + "); "
	const (
		foreign    = ": this is not an Arrow IPC or Parquet file: it "
		again      = "; whatever wrote or downloaded it did not finish: make it again"
		oneType    = "; write the column again with one type, such as by table.cast of pyarrow; or choose the other columns (columns=), or open the files apart"
		damaged    = "; the data are damaged or cut short; write them again"
		instead    = "; copy or download the directory again, or open its files by name, as in "
		zarr       = `: not a directory of Arrow files: it is a Zarr array or group; if it fits into memory: mf.from_arrays({"x": zarr.open("in.zarr")[:]}); if not, write its rows as Arrow IPC files, for example with pyarrow.ipc.new_file`
		oldRelease = ", which datasets up to 1.5 follows and later releases ignore; load it with such an old release, call flatten_indices(), and save it again"
		noFile     = ", not a file; rows are read in any order: copy its content into a file first"
	)
	for _, c := range []struct {
		patterns string // separated by blanks
		code     status.Code
		want     string
	}{
		{"missing.arrow", status.NotFound, "missing.arrow: there is no such file or directory; HERE has no missing.arrow"},
		{"hf/missing/x.arrow", status.NotFound, "hf/missing/x.arrow: there is no such file or directory; HERE/hf has no missing"},
		{"~/x.arrow", status.NotFound, "~/x.arrow: there is no such file or directory; ~ is not replaced here: write the whole path"},
		{"az://bucket/x.arrow", status.Unsupported, "az://bucket/x.arrow: nothing here opens URLs of the scheme \"az\", only of gs, hf, http, https, s3; copy the files to this machine, or mount what holds them, and give their paths"},

		{"missing-*.arrow", status.NotFound, `no file matches "missing-*.arrow"; HERE holds bare, both, broken, 44 more`},
		{"many/*.arrow", status.NotFound, `no file matches "many/*.arrow"; HERE/many holds a.csv, b.csv, c.csv, 1 more`},
		{"void/*", status.NotFound, `no file matches "void/*"; HERE/void is empty`},
		{"nowhere/at/all/*.arrow", status.NotFound, `no file matches "nowhere/at/all/*.arrow"; HERE has no nowhere`},
		{"splits/*", status.NotFound, `no file matches "splits/*", only 2 directories; files in directories are taken by splits/*/*.arrow`},
		{"dee*", status.NotFound, `no file matches "dee*", only the directory deep; files in directories are taken by dee*/*.arrow`},
		{"hf/**/*.arrow", status.InvalidArgument, `the glob "hf/**/*.arrow" has **, which would be read as *; write one * for each level, as in hf/*/*.arrow`},
		{"[ x.arrow", status.InvalidArgument, `"[" is not a glob: syntax error in pattern`},

		{"hf/*", status.Unsupported, "hf/dataset_info.json" + foreign + `is JSON; "hf/*" matches files of other kinds, too: open the directory itself, hf`},
		{"mixed/*", status.Unsupported, "mixed/readme.txt" + foreign + `is text and begins with "Read me."; "mixed/*" matches files of other kinds, too: open mixed/*.arrow`},
		{"mixed/*[tw]", status.Unsupported, "mixed/readme.txt" + foreign + `is text and begins with "Read me."; "mixed/*[tw]" matches files of other kinds, too: open a glob that ends in .arrow`},
		{"many/*", status.DataLoss, "many/a.csv" + foreign + "is empty" + again},
		{"spark/*.arrow", status.InvalidArgument, `"spark/*.arrow" matches files, and the directory spark/b.arrow with Arrow files in it, which would be left out; files in directories are taken by spark/*.arrow/*.arrow, and the others by their names`},
		{"keys/*", status.InvalidArgument, `"keys/*" matches files, and the directory keys/a=1 with Arrow files in it, which would be left out; say which are meant, as in keys/*.arrow or keys/*/*.arrow`},
		{"inner", status.InvalidArgument, "inner: the directory has Arrow files, and so has inner/sub in it, which would be left out; say which are meant, as in inner/*.arrow or inner/*/*.arrow"},
		{"both/*", status.InvalidArgument, `"both/*" matches files, and the directory both/sub with Arrow files in it, which would be left out; say which are meant, as in both/*.arrow or both/*/*.arrow`},
		{"both", status.InvalidArgument, "both: the directory has Arrow files, and so has both/sub in it, which would be left out; say which are meant, as in both/*.arrow or both/*/*.arrow"},

		{"p.parquet", status.DataLoss, "p.parquet: end of the file at byte 16: a footer of 544500000 bytes in a file of 24" + damaged},
		{"short.parquet", status.DataLoss, "short.parquet: end of the file at byte 0: no footer; it was cut short, or its writer was not closed: write or download it again"},
		{"secret.parquet", status.Unsupported, "secret.parquet: the footer of the Parquet file is encrypted; write it with a plain footer, or as an Arrow IPC file"},
		{"empty.arrow", status.DataLoss, "empty.arrow" + foreign + "is empty" + again},
		{"text.csv", status.Unsupported, "text.csv" + foreign + `is text and begins with "name,age\nx,1\n"; if it is a table: write an Arrow IPC file from it, with pyarrow: import pyarrow.feather, pyarrow.csv; pyarrow.feather.write_feather(pyarrow.csv.read_csv("in.csv"), "out.arrow", compression="uncompressed"); other text must become numbers first, such as token ids`},
		{"x.arrow.gz", status.Unsupported, "x.arrow.gz" + foreign + "is compressed with gzip; unpack it first: rows are read in any order, which a packed file does not allow"},
		{"page.arrow", status.Unsupported, "page.arrow" + foreign + "is a page of HTML or XML; a download that fails, or needs a login, leaves such a page: download the file again"},
		{"lfs.arrow", status.Unsupported, "lfs.arrow" + foreign + "is a pointer of Git LFS; fetch what it points to: git lfs pull"},
		{"cut.arrow", status.DataLoss, `cut.arrow: end of the file at byte 436: no footer: the last bytes are "\x00\x00\x00\x01@\x00" instead of "ARROW1"; it was cut short, or its writer was not closed: write or download it again`},

		{"none", status.NotFound, "none" + noArrow + "HERE/none holds readme.txt"},
		{"left", status.NotFound, "left" + noArrow + "files whose names begin with . or _ are left out; rename them, or name them by themselves"},
		{"left/*", status.NotFound, `no file matches "left/*"; it matches left/_x.arrow, but files whose names begin with . or _ are left out; rename them, or name them by themselves`},
		{"left/*/*.arrow", status.NotFound, `no file matches "left/*/*.arrow"; HERE/left holds _x.arrow`},
		{"bare", status.Unsupported, "bare/README" + foreign + `is text and begins with "Read me."; name the files with data, such as by a glob`},
		{"void", status.NotFound, "void" + noArrow + "HERE/void is empty"},
		{"parquet", status.NotFound, "parquet" + noArrow + "files in subdirectories are taken by a glob: parquet/*/*.parquet"},
		{"new.zarr", status.Unsupported, "new.zarr" + zarr},
		{"old.zarr", status.Unsupported, "old.zarr" + zarr},
		{"group.zarr", status.Unsupported, "group.zarr" + zarr},
		{"deep", status.NotFound, "deep" + noArrow + "files in subdirectories are taken by a glob: deep/*/*.arrow"},
		{"dict", status.InvalidArgument, `dict: the directory has the splits train, test; choose one with split="train", or open dict/train`},
		{"mapped", status.Unsupported, "mapped: the dataset was saved with an indices mapping" + oldRelease},
		{"skipped", status.Unsupported, "skipped: the dataset was saved as a part of its files" + oldRelease},
		{"empty", status.Unsupported, "empty: the dataset was saved as a part of its files" + oldRelease},
		{"part", status.Unsupported, "part: the dataset was saved as a part of its files" + oldRelease},
		{"escape", status.DataLoss, `escape: state.json lists {"filename": "../x.arrow"}, which is not a file in the directory` + instead + "escape/*.arrow"},
		{"broken", status.DataLoss, "broken/state.json: expected a value, but the text ends (at byte 17)" + instead + "broken/*.arrow"},
		{"list", status.DataLoss, "list/state.json: expected an object, but found a list" + instead + "list/*.arrow"},
		{"words", status.DataLoss, `words: state.json lists "x.arrow", which is not a file in the directory` + instead + "words/*.arrow"},
		{"phrase", status.InvalidArgument, "phrase: this is a dictionary of datasets without splits; save one that has some"},
		{"norecords", status.NotFound, "norecords: state.json lists no data files: what was saved had no records; save a dataset that has some"},
		{"nosplits", status.InvalidArgument, "nosplits: this is a dictionary of datasets without splits; save one that has some"},
		{"gone", status.NotFound, "gone/gone.arrow: there is no such file or directory; gone/state.json lists it: copy or download the directory again"},

		{"loop.arrow", status.IO, "loop.arrow: too many levels of symbolic links; a link on the way leads back to itself: correct it"},
		{"dangling.arrow", status.NotFound, "dangling.arrow: this is a link to blobs/1234, which does not exist; fetch or copy the file that the link leads to"},
		{"dangling.*", status.NotFound, "dangling.arrow: this is a link to blobs/1234, which does not exist; fetch or copy the file that the link leads to"},
		{"pipes/p.arrow", status.Unsupported, "pipes/p.arrow: this is a pipe" + noFile},
		{"pipes/*.arrow", status.Unsupported, "pipes/p.arrow: this is a pipe" + noFile},
		{"pipes", status.Unsupported, "pipes/p.arrow: this is a pipe" + noFile},
		{"/dev/null", status.Unsupported, "/dev/null: this is a device" + noFile},

		{"x.arrow float.arrow", status.Incompatible, `float.arrow: field "x" is float32, but int64 in x.arrow` + oneType},
		{"x.arrow y.arrow", status.Incompatible, `y.arrow: there is no column "x", which x.arrow has; the files have no columns in common; open them apart`},
	} {
		refused(t, strings.Fields(c.patterns), c.code, c.want)
	}
}

// TestOpenBesideOthers opens Arrow files among files of other kinds.
func TestOpenBesideOthers(t *testing.T) {
	badPaths(t)
	for _, pattern := range []string{"fine", "fine/*", "fine/*.arrow", "fine/.cache/*", "foreign", "hf", "hf/*.arrow", "mixed", "both/*.arrow", "splits/train"} {
		ds, err := arrowio.Open(pattern)
		if err != nil {
			t.Errorf("%s: %v", pattern, err)
			continue
		}
		if ds.Len() != 1 {
			t.Errorf("%s: %d records", pattern, ds.Len())
		}
		ds.Close()
	}
}
