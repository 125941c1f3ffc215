package arrowio_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

func fingerprint(t *testing.T, paths ...string) source.Fingerprint {
	t.Helper()
	return fingerprintAs(t, arrowio.Options{Shapes: shapes}, paths...)
}

func fingerprintAs(t *testing.T, o arrowio.Options, paths ...string) source.Fingerprint {
	t.Helper()
	ds, err := arrowio.OpenFiles(t.Context(), paths, o)
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	f, err := ds.Fingerprint(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestFingerprint: it depends on the content, and not on names and times.
func TestFingerprint(t *testing.T) {
	a, b, copied := temp(t, "a.arrow"), temp(t, "b.arrow"), temp(t, "c.arrow")
	save(t, a, false, everything, []int{3, 4}, 1)
	save(t, b, true, everything, []int{7}, 2)
	data, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	write := func(data []byte) {
		if err := os.WriteFile(copied, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(data)
	if fingerprint(t, a) != fingerprint(t, copied) {
		t.Error("a copy has another fingerprint")
	}
	if fingerprint(t, a, b) == fingerprint(t, b, a) {
		t.Error("another order of the files has the same fingerprint")
	}
	value := readBack(t, a)[0].Column(0).Data().Buffers()[1].Bytes()[:3]
	at := bytes.Index(data, value) // 64 samples of 7 rows: each row is among them
	data[at] ^= 1
	write(data)
	if fingerprint(t, a) == fingerprint(t, copied) {
		t.Error("another value has the same fingerprint")
	}
}

// TestFingerprintOfFewBytes: it covers every byte of small files.
func TestFingerprintOfFewBytes(t *testing.T) {
	l := write(t, arrow.PrimitiveTypes.Int64, "["+strings.Repeat("7,", 99_999)+"7]")
	covers(t, l.path, int64(len(l.data)), int64(len(l.data)))
	seen := map[source.Fingerprint]int{fingerprintAs(t, arrowio.Options{}, l.path): -1}
	for _, at := range []int{0, 1000, 400_000, 799_999} {
		l.put(1, at, byte(9))
		f := fingerprintAs(t, arrowio.Options{}, l.path)
		if before, known := seen[f]; known {
			t.Errorf("byte %d changes nothing after byte %d", at, before)
		}
		seen[f] = at
	}
}

// covers checks how many bytes a fingerprint covers.
func covers(t *testing.T, path string, hashed, of int64) {
	t.Helper()
	ds, err := arrowio.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	if h, all := source.CoverageOf(ds); h != hashed || all != of {
		t.Errorf("covers %d of %d bytes, want %d of %d", h, all, hashed, of)
	}
}

// TestFingerprintOfManyBytes: larger files are sampled at 64 positions, and the
// coverage is reported. The hash of all bytes covers the others, too.
func TestFingerprintOfManyBytes(t *testing.T) {
	path, size := temp(t, "large.arrow"), int64(0)
	schema := arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Int64}}, nil)
	save(t, path, false, schema, []int{1_200_000, 1_200_000}, 1)
	if info, err := os.Stat(path); err != nil || info.Size() <= 16<<20 {
		t.Fatalf("%v, %v: the test checks nothing", info.Size(), err)
	} else {
		size = info.Size()
	}
	covers(t, path, 64*4096, size)
	before, hash := fingerprintAs(t, arrowio.Options{}, path), hashOf(t, path)
	changed := 0
	for at := size / 20; at < size-size/20; at += size / 10 {
		flip(t, path, at)
		if fingerprintAs(t, arrowio.Options{}, path) != before {
			changed++
		}
		if hashOf(t, path).Sum == hash.Sum {
			t.Errorf("the hash does not see byte %d", at)
		}
		flip(t, path, at)
	}
	if changed > 5 { // a sample contains a given byte with a probability of 1 in 70
		t.Errorf("the samples saw %d of 10 changed bytes", changed)
	}
	if hashOf(t, path, path).Sum == hash.Sum || hashOf(t, path, path).Files[1] != hash.Files[0] {
		t.Error("the hash of the file twice is wrong")
	}
}

func hashOf(t *testing.T, paths ...string) arrowio.Hash {
	t.Helper()
	ds, err := arrowio.OpenFiles(t.Context(), paths, arrowio.Options{Duplicates: "allow"})
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	var out [2]arrowio.Hash
	for i := range out { // it is kept
		if out[i], err = ds.Hash(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if out[0].Sum != out[1].Sum {
		t.Error("two calls of Hash differ")
	}
	return out[0]
}

// flip changes one bit of a byte in a file.
func flip(t *testing.T, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 1
	if _, err := f.WriteAt(b[:], at); err != nil {
		t.Fatal(err)
	}
}

// TestHashEnds: a context or Close ends it. A later call starts from the beginning.
func TestHashEnds(t *testing.T) {
	ds, err := arrowio.Open("../internal/arrowmeta/testdata/primitive.arrow")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := ds.Hash(ctx); status.CodeOf(err) != status.Cancelled {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := ds.Hash(context.Background()); err != nil {
		t.Errorf("after that: %v", err)
	}
	ds.Close()
	if _, err := ds.Hash(context.Background()); status.CodeOf(err) != status.InvalidState {
		t.Errorf("closed: %v", err)
	}
}

// TestHashIsThatOfOtherTools: the hash of each file equals the output of sha256sum.
func TestHashIsThatOfOtherTools(t *testing.T) {
	a, b := "../internal/arrowmeta/testdata/primitive.arrow", "../internal/arrowmeta/testdata/polars.arrow"
	got := hashOf(t, a)
	data, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	if got.Files[0] != sum || got.Sum != sha256.Sum256(sum[:]) {
		t.Errorf("got %x, want %x", got, sum)
	}
	if hashOf(t, b).Sum == got.Sum {
		t.Error("two files have one hash")
	}
}

// TestFingerprintInMemory: it covers every value of up to 256 MiB in memory, and
// reports that.
func TestFingerprintInMemory(t *testing.T) {
	labels := make([]int64, 1_000_000)
	hash := func() source.Fingerprint {
		ds, err := arrowio.FromSlices(arrowio.Slice("label", labels))
		if err != nil {
			t.Fatal(err)
		}
		defer ds.Close()
		if hashed, of := source.CoverageOf(ds); hashed != 8_000_000 || of != 8_000_000 {
			t.Errorf("covers %d of %d bytes", hashed, of)
		}
		f, err := ds.Fingerprint(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	before := hash()
	for _, i := range []int{0, 499_999, 999_999} {
		labels[i] = 1
		if hash() == before {
			t.Errorf("label %d changes nothing", i)
		}
		labels[i] = 0
	}
	if hash() != before {
		t.Error("the same labels have another fingerprint")
	}
}

// sampledHash hashes samples of a file, as the fingerprint of larger files does.
func sampledHash(t *testing.T, path string) [32]byte {
	t.Helper()
	ds, err := arrowio.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	sum, err := ds.HashSamples(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// TestSamplesOfABatch: 64 samples of 4 KiB cover nearly all of 8,000 bytes.
func TestSamplesOfABatch(t *testing.T) {
	l := write(t, arrow.PrimitiveTypes.Int64, "["+strings.Repeat("7,", 999)+"7]")
	seen := map[[32]byte]int{sampledHash(t, l.path): -1}
	for _, at := range []int{1000, 4000, 6000, 7500} {
		l.put(1, at, byte(9))
		f := sampledHash(t, l.path)
		if before, known := seen[f]; known {
			t.Errorf("byte %d changes nothing after byte %d", at, before)
		}
		seen[f] = at
	}
}

// TestSamplesOfDictionaries: the values of a dictionary are sampled, because they
// are the rows of its field.
func TestSamplesOfDictionaries(t *testing.T) {
	hash := func(values string) [32]byte { return sampledHash(t, write(t, dictionaryType, values).path) }
	if hash("[0.5,1.5,0.5]") == hash("[0.5,2.5,0.5]") {
		t.Error("another value in the dictionary has the same hash")
	}
}

// TestFingerprintIsFrozen: saved states hold fingerprints, so they must never
// change for the same files.
func TestFingerprintIsFrozen(t *testing.T) {
	for path, want := range map[string]string{
		"../internal/arrowmeta/testdata/primitive.arrow":    "d029e0193d61c6941233adbccda2d682",
		"../internal/arrowmeta/testdata/huggingface.stream": "5df6490b3aed3b1aee150390106b6a18",
		"../internal/arrowmeta/testdata/lz4.arrow":          "24e2f364a365285fca5f93158e510b43",
		deltaFile: "e311125dbf52aa0c49304c730239110a",
	} {
		ds, err := arrowio.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := ds.Fingerprint(context.Background())
		if err != nil || f.String() != want {
			t.Errorf("%s: got %q, %v, want %q", path, f, err, want)
		}
		ds.Close()
	}
}

// TestVerify reads all values, and finds a list that is too short.
func TestVerify(t *testing.T) {
	path := temp(t, "x.arrow")
	save(t, path, true, everything, []int{50, 0, 30}, 1)
	ds, err := arrowio.OpenFiles(t.Context(), []string{path, path}, arrowio.Options{Shapes: shapes, Duplicates: "allow"})
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	var done, total int64
	v, err := ds.Verify(context.Background(), arrowio.VerifyOptions{Hash: true, Progress: func(d, n int64) {
		if d < done || d > n {
			t.Errorf("progress went from %d to %d of %d", done, d, n)
		}
		done, total = d, n
	}})
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if v.Records != 160 || v.Batches != 6 || v.Bytes != 2*info.Size() || v.Hash == nil || done != total || total != 2*v.Bytes {
		t.Errorf("got %+v, progress %d of %d", v, done, total)
	}

	// Bytes count where they are read: bytes of fixed fields while rows are gathered.
	fixed, err := arrowio.Open("testdata/parquet/delta.arrow")
	if err != nil {
		t.Fatal(err)
	}
	defer fixed.Close()
	var steps []int64
	v, err = fixed.Verify(t.Context(), arrowio.VerifyOptions{Progress: func(d, _ int64) { steps = append(steps, d) }})
	rows := 19 * v.Records // 8, 4, 4 and 3 bytes
	if err != nil || !slices.Contains(steps, v.Bytes-rows) || steps[len(steps)-1] != v.Bytes {
		t.Errorf("%d records of %d bytes, progress %d, %v", v.Records, v.Bytes, steps, err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := ds.Verify(ctx, arrowio.VerifyOptions{}); status.CodeOf(err) != status.Cancelled {
		t.Errorf("a cancelled verification: %v", err)
	}
}
