package arrowio_test

import (
	"bytes"
	"context"
	"os"
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
	ds, err := arrowio.OpenFiles(paths, o)
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

// TestFingerprint: the content counts, names and times do not.
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
	value := readBack(t, a, false)[0].Column(0).Data().Buffers()[1].Bytes()[:3]
	at := bytes.Index(data, value) // 64 places in 7 rows: each row is sampled
	data[at] ^= 1
	write(data)
	if fingerprint(t, a) == fingerprint(t, copied) {
		t.Error("another value has the same fingerprint")
	}
}

// TestFingerprintSamplesAllOfABatch: 64 times 4 KiB of 8,000 bytes leave out
// none but the last few.
func TestFingerprintSamplesAllOfABatch(t *testing.T) {
	l := write(t, arrow.PrimitiveTypes.Int64, "["+strings.Repeat("7,", 999)+"7]")
	seen := map[source.Fingerprint]int{fingerprintAs(t, arrowio.Options{}, l.path): -1}
	for _, at := range []int{1000, 4000, 6000, 7500} {
		l.put(1, at, byte(9))
		f := fingerprintAs(t, arrowio.Options{}, l.path)
		if before, known := seen[f]; known {
			t.Errorf("byte %d changes nothing after byte %d", at, before)
		}
		seen[f] = at
	}
}

// TestFingerprintSamplesDictionaries: the rows of a field of codes are the
// values of its dictionary.
func TestFingerprintSamplesDictionaries(t *testing.T) {
	hash := func(values string) source.Fingerprint {
		l := write(t, coded, values)
		return fingerprintAs(t, arrowio.Options{}, l.path)
	}
	if hash("[0.5,1.5,0.5]") == hash("[0.5,2.5,0.5]") {
		t.Error("another value in the dictionary has the same fingerprint")
	}
}

// TestFingerprintIsFrozen: saved states hold fingerprints, so they must never
// change for the same files.
func TestFingerprintIsFrozen(t *testing.T) {
	for path, want := range map[string]string{
		"../core/arrowmeta/testdata/primitive.arrow":    "0352a2e247e09547b0ab6f140f599f0d",
		"../core/arrowmeta/testdata/huggingface.stream": "06a6c2bc077c18d5870546b35bdfc80e",
		"../core/arrowmeta/testdata/lz4.arrow":          "c32f07bf1445c5d1e4b8c919fbb0fc9a",
		deltaFile:                                       "746c07d68f5499a0c82d9a57fa54c49c",
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

// TestVerify reads everything, and finds a list that is too short.
func TestVerify(t *testing.T) {
	path := temp(t, "x.arrow")
	save(t, path, true, everything, []int{50, 0, 30}, 1)
	ds, err := arrowio.OpenFiles([]string{path, path}, arrowio.Options{Shapes: shapes})
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
	if v.Records != 160 || v.Batches != 6 || v.Bytes != 2*info.Size() || len(v.Hash) != 64 || done != total || total != 2*v.Bytes {
		t.Errorf("got %+v, progress %d of %d", v, done, total)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := ds.Verify(ctx, arrowio.VerifyOptions{}); status.CodeOf(err) != status.Cancelled {
		t.Errorf("a cancelled verification: %v", err)
	}
}
