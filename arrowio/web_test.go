package arrowio

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/blob/blobtest"
	"github.com/meshfeed/meshfeed/arrowio/internal/remote"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/far"
	"github.com/meshfeed/meshfeed/tests/random"
)

// webFiles returns a file of each format by its path, as a server has them.
func webFiles(t *testing.T) map[string][]byte {
	t.Helper()
	read := func(name string) []byte {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	var lines, packed, archive bytes.Buffer
	for i := range 3000 {
		fmt.Fprintf(&lines, "{\"id\": %d, \"text\": \"row %d\"}\n", i, i*i)
	}
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(lines.Bytes())
	_ = z.Close()
	w := tar.NewWriter(&archive)
	for i := range 9 {
		for _, field := range []string{"txt", "cls"} {
			data := bytes.Repeat([]byte{byte('0' + i)}, i+1)
			_ = w.WriteHeader(&tar.Header{Name: fmt.Sprintf("%03d.%s", i, field), Size: int64(len(data)), Mode: 0o600})
			_, _ = w.Write(data)
		}
	}
	_ = w.Close()
	npy := append([]byte("\x93NUMPY\x01\x00\x76\x00{'descr': '<u2', 'fortran_order': False, 'shape': (50000,), }"), bytes.Repeat([]byte(" "), 118-60)...)
	npy = append(npy[:127], '\n')
	raw := make([]byte, 100_000)
	for i := range raw {
		raw[i] = byte(i * i >> 3)
	}
	index := append([]byte("MMIDIDX\x00\x00"), 1, 0, 0, 0, 0, 0, 0, 0, 8, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0)
	index = append(index, 0x40, 0x9c, 0, 0, 0x10, 0x27, 0, 0)                                     // 40,000 and 10,000 elements
	index = append(index, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x38, 1, 0, 0, 0, 0, 0)                   // from bytes 0 and 80,000 on
	index = append(index, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0) // ends of documents
	return map[string][]byte{
		"/plain.parquet": read("testdata/parquet/plain.parquet"), "/fixed.arrow": read("../internal/arrowmeta/testdata/fixed.arrow"),
		"/lz4.arrow": read("../internal/arrowmeta/testdata/lz4.arrow"), "/x.arrows": read("../internal/arrowmeta/testdata/huggingface.stream"),
		"/x.jsonl": lines.Bytes(), "/x.jsonl.gz": packed.Bytes(), "/x.tar": archive.Bytes(), "/x.npy": append(npy, raw...),
		"/x.bin": raw, "/x.idx": index,
	}
}

// rowsOf reads rows of all fields, in another order, with Read, and gathers those of fixed fields.
func rowsOf(t *testing.T, d *Dataset) (rows []byte) {
	t.Helper()
	var records []int64
	for r := int64(0); r < d.Len(); r += max(d.Len()/50, 1) {
		records = append(records, r)
	}
	slices.Reverse(records)
	for i, f := range d.Schema().Fields {
		if f.Ragged > 0 {
			r, err := d.Reader([]int{i})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			lengths := make([]int64, len(records))
			if err := r.Lengths(context.Background(), source.Draw{}, i, records, lengths); err != nil {
				t.Fatal(err)
			}
			rows = fmt.Append(rows, lengths)
			continue
		}
		g, err := d.Gatherer([]source.Part{d.Schema().Whole(i)})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		dst := make([]byte, len(records)*f.RowBytes())
		if err := g.Gather(context.Background(), source.Draw{}, records, []source.Job{{Rows: [2]int{0, len(records)}, Dst: dst}}); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, dst...)
	}
	return rows
}

// TestWebEqualsDisk: a file of each format gives the same rows and the same hash over http as from the
// disk, at 1.00 times its bytes, and in two datasets with one folder still so. The fingerprint reads nothing.
func TestWebEqualsDisk(t *testing.T) {
	s := &far.Server{Files: webFiles(t)}
	server := httptest.NewServer(s)
	defer server.Close()
	dir := t.TempDir()
	for name, data := range s.Files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, data := range s.Files {
		for _, cache := range []string{"memory", "auto", t.TempDir()} {
			o := Options{Cache: cache, CacheHome: t.TempDir()}
			if name == "/x.bin" {
				o.DType = dtype.Uint16
			}
			near, err := OpenFiles(t.Context(), []string{dir + name}, o)
			if err != nil {
				t.Fatal(err)
			}
			defer near.Close()
			s.Take()
			fetched := int64(len(data))
			if name == "/x.idx" {
				fetched += int64(len(s.Files["/x.bin"]))
			}
			for range 2 {
				d, err := OpenFiles(t.Context(), []string{server.URL + name}, o)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := d.Fingerprint(t.Context()); err != nil {
					t.Error(err)
				}
				if got := rowsOf(t, d); !bytes.Equal(got, rowsOf(t, near)) || len(got) == 0 {
					t.Errorf("%s, cache %s: other rows", name, cache)
				}
				if kept := source.CacheInfoOf(d).Folder != ""; kept != (cache != "memory") && d.files.List[0].Encoding != "" {
					t.Errorf("%s, cache %s: kept on disk: %v", name, cache, kept)
				}
				if c := d.fetched(); c.Bytes != c.Planned { // on a busy machine an attempt may be late, and goes on in another
					t.Errorf("%s: %+v", name, c)
				}
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			}
			if count := s.Take(); cache != "memory" && count.Bytes > fetched+2*2*64<<10+32 {
				t.Errorf("%s: %+v, for %d bytes", name, count, fetched)
			}
		}
		d, err := OpenFiles(t.Context(), []string{server.URL + name}, Options{CacheHome: t.TempDir(), DType: map[bool]dtype.Type{true: dtype.Uint16}[name == "/x.bin"]})
		if err != nil {
			t.Fatal(err)
		}
		v, err := d.Verify(t.Context(), VerifyOptions{Hash: true})
		if err != nil || v.Bytes == 0 {
			t.Errorf("%s: %v", name, err)
		}
		_ = d.Close()
	}
}

// TestEpochsUnderFaults: epochs over a server with 5 % faults have the bytes of epochs over the disk. The second
// epoch sends no request, and a closed dataset leaves no goroutine.
func TestEpochsUnderFaults(t *testing.T) {
	all := webFiles(t)
	s := &far.Server{Files: map[string][]byte{}, Latency: 30 * time.Millisecond, Share: 0.05, Faults: far.Passing}
	var names []string
	for i := range 40 {
		name := fmt.Sprintf("http://host/%03d", i)
		s.Files[fmt.Sprintf("/%03d", i)] = all["/plain.parquet"]
		names = append(names, name)
	}
	near, err := OpenFiles(t.Context(), []string{"testdata/parquet/plain.parquet"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	var records, local []int64
	for i := range near.Len() * 40 {
		records = append(records, (i*7919)%(near.Len()*40))
		local = append(local, records[i]%near.Len())
	}
	gather := func(d *Dataset, records []int64) []byte {
		g, err := d.Gatherer([]source.Part{d.Schema().Whole(0)})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		dst := make([]byte, len(records)*d.Schema().Fields[0].RowBytes())
		if err := g.Gather(context.Background(), source.Draw{}, records, []source.Job{{Rows: [2]int{0, len(records)}, Dst: dst}}); err != nil {
			t.Fatal(err)
		}
		return dst
	}
	want := gather(near, local)
	retries := int64(0)
	for seed := range uint64(random.Count(5, 100)) {
		synctest.Test(t, func(t *testing.T) {
			s.Seed = seed
			dial, stop := far.Serve(s)
			defer stop()
			op := remote.NewOpener(remote.New(dial))
			d, err := OpenFiles(context.Background(), names, Options{Opener: op, Cache: t.TempDir(), Duplicates: "allow"})
			if err != nil {
				t.Fatal(err)
			}
			if c := op.Counts(); c.Requests-c.Retries > 42 {
				t.Errorf("opening 40 files took %+v", c)
			}
			if !bytes.Equal(gather(d, records), want) {
				t.Error("other rows")
			}
			before := op.Counts()
			if !bytes.Equal(gather(d, records), want) || op.Counts() != before {
				t.Errorf("the second epoch took %+v, after %+v", op.Counts(), before)
			}
			if retries += before.Retries; float64(before.Bytes) > 1.02*float64(before.Planned) {
				t.Errorf("%+v", before)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	if retries == 0 {
		t.Error("no request was tried again")
	}
}

// TestThousandFiles: opening a thousand files takes a request for each, 16 at once.
func TestThousandFiles(t *testing.T) {
	data := webFiles(t)["/plain.parquet"]
	s := &far.Server{Files: map[string][]byte{}, Latency: 30 * time.Millisecond}
	for i := range 1000 {
		s.Files[fmt.Sprintf("/%03d.parquet", i)] = data
	}
	synctest.Test(t, func(t *testing.T) {
		dial, stop := far.Serve(s)
		defer stop()
		began := time.Now()
		d, err := OpenFiles(context.Background(), []string{"http://host/{000..999}.parquet"}, Options{Opener: remote.NewOpener(remote.New(dial)), Duplicates: "allow"})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if count := s.Take(); count.Requests != 1000 || count.AtOnce != 16 || time.Since(began) > 2*time.Second || d.Len() == 0 {
			t.Errorf("%+v in %v", count, time.Since(began))
		}
	})
}

// writeAll writes the bytes of all files of a folder.
func writeAll(to io.Writer, folder string) error {
	return filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if e.IsDir() || err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		_, _ = to.Write(data)
		return err
	})
}

// TestSecretsStay: the user, the password and the query of an address are in requests, and nowhere else.
func TestSecretsStay(t *testing.T) {
	s := &far.Server{Files: webFiles(t), User: "me:hunter2"}
	server := httptest.NewServer(s)
	defer server.Close()
	cache, address := t.TempDir(), func(path string) string {
		return strings.Replace(server.URL, "http://", "http://me:hunter2@", 1) + path + "?signature=hunter2"
	}
	var said strings.Builder
	d, err := OpenFiles(t.Context(), []string{address("/plain.parquet"), address("/{plain..plain}.parquet")}, Options{Cache: cache})
	fmt.Fprintln(&said, d, err)
	for _, paths := range [][]string{{address("/plain.parquet")}, {address("/x.jsonl")}, {address("/none")}, {address("/*.parquet")}, {address("/")}, {address("/{0..1}.parquet")}, {"http://me:hunter2@"},
		{"http://me:hunter2@%zz/x"}, {address("/plain.parquet"), address("/plain.parquet")}, {address("/plain.parquet"), "x.parquet"}, {"s3+hunter://b/x"}} {
		d, err := OpenFiles(t.Context(), paths, Options{Cache: cache})
		if err != nil {
			fmt.Fprintf(&said, "%v %+v\n", err, err)
			continue
		}
		f, err := d.Fingerprint(t.Context())
		v, versioned := stored{d}.version()
		fmt.Fprintln(&said, d.Files(), f, err, v, versioned, source.CacheInfoOf(d), len(rowsOf(t, d)))
		s.Put("/plain.parquet", s.Files["/plain.parquet"])
		for _, f := range d.files.List {
			fmt.Fprintln(&said, f.Path, f.Stamp, f.Content.Identity(), f.ReadFull(t.Context(), make([]byte, 1), 0))
		}
		_ = d.Close()
	}
	err = writeAll(&said, cache)
	if err != nil || strings.Contains(said.String(), "hunter2") || strings.Contains(said.String(), "signature") {
		t.Errorf("%v: %.3000q", err, said.String())
	}
	for _, want := range []string{"/plain.parquet", "there is no such file", "does not list its files", "two kinds of storage"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("nothing says %q: %.3000q", want, said.String())
		}
	}
}

// TestFarIsOff: a variable forbids all connections, and then no credential is looked for.
func TestFarIsOff(t *testing.T) {
	getenv := func(name string) string {
		if name == "MESHFEED_FAR" {
			return "off"
		}
		t.Errorf("%s is asked for", name)
		return ""
	}
	for _, name := range []string{"https://host/x", "hf://datasets/org/name", "s3://bucket/x", "gs://bucket/x"} {
		_, err := OpenFiles(t.Context(), []string{name}, Options{Getenv: getenv})
		const want = "arrowio: MESHFEED_FAR is off, so no connection is made; remove the variable from the environment, or give paths of this machine"
		if status.CodeOf(err) != status.Unsupported || err.Error() != want {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestRanges: a range of numbers in an address names the files of a dataset, in order.
func TestRanges(t *testing.T) {
	data := webFiles(t)["/plain.parquet"]
	s := &far.Server{Files: map[string][]byte{"/a/train-08.parquet": data, "/a/train-09.parquet": data, "/a/train-10.parquet": data}}
	server := httptest.NewServer(s)
	defer server.Close()
	d, err := OpenFiles(t.Context(), []string{server.URL + "/a/train-{08..10}.parquet"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var paths []string
	for _, f := range d.Files() {
		paths = append(paths, strings.TrimPrefix(f.Path, server.URL))
	}
	if got := strings.Join(paths, " "); got != "/a/train-08.parquet /a/train-09.parquet /a/train-10.parquet" || s.Take().Requests != 3 {
		t.Error(got)
	}
}

// TestRegister: a program opens URLs of a scheme of its own.
func TestRegister(t *testing.T) {
	data := webFiles(t)["/plain.parquet"]
	Register("test", func(context.Context, Settings) (blob.Opener, error) {
		return blobtest.Memory{"test://b/x.parquet": data}, nil
	})
	defer delete(schemes.open, "test")
	d, err := OpenFiles(t.Context(), []string{"test://b/*.parquet"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	_ = d.Close()
}
