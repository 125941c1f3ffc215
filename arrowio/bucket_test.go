package arrowio

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meshfeed/meshfeed/arrowio/internal/bucket"
	"github.com/meshfeed/meshfeed/arrowio/internal/remote"
	"github.com/meshfeed/meshfeed/tests/far"
)

// TestBucketEqualsDisk: files, partitions and a split in a bucket have the rows of the same files on a disk. Copies in two
// stores have one fingerprint, and no credential is in an error or in a file of the cache.
func TestBucketEqualsDisk(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	all := webFiles(t)
	keys := map[string][]byte{
		"hive/year=2024/month=1/a.parquet": all["/plain.parquet"], "hive/year=2024/month=2/a.parquet": all["/plain.parquet"],
		"hive/year=2025/month=1/a.parquet": all["/plain.parquet"], "hive/_SUCCESS": nil,
		"split/train-00000-of-00002.parquet": all["/plain.parquet"], "split/train-00001-of-00002.parquet": all["/plain.parquet"], "split/test-00000-of-00001.parquet": all["/plain.parquet"],
		"lines/a b+c.jsonl": all["/x.jsonl"], "lines/a b+d.jsonl": all["/x.jsonl"], "shards/0.tar": all["/x.tar"], "shards/1.tar": all["/x.tar"],
	}
	stores := map[string]*far.Store{"s3": far.NewStore("data"), "gs": far.NewStore("data")}
	stores["s3"].ID, stores["s3"].Secret, stores["s3"].Token = "AKID", "hunter2", "hunter3"
	stores["gs"].Google = true
	environment := map[string]string{"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "hunter2", "AWS_SESSION_TOKEN": "hunter3"}
	for scheme, s := range stores {
		server := httptest.NewServer(s)
		defer server.Close()
		environment[map[string]string{"s3": "AWS_ENDPOINT_URL", "gs": "STORAGE_EMULATOR_HOST"}[scheme]] = server.URL
		for key, data := range keys {
			s.Put(key, data)
		}
	}
	for key, data := range keys {
		path := filepath.Join(dir, key)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := Options{Cache: cache, Getenv: func(name string) string { return environment[name] }, Duplicates: "allow"}
	for name, requests := range map[string]int{"hive": 6, "split": 5, "hive/*/*/*.parquet": 6, "hive/year=2024/month=1/a.parquet": 2, "split/train-{00000..00001}-of-00002.parquet": 3, "lines/a b+*.jsonl": 5, "shards/{0..1}.tar": 3} {
		if o.Split = ""; name == "split" {
			o.Split = "train"
		}
		near, err := OpenFiles(t.Context(), []string{dir + "/" + name}, o)
		if err != nil {
			t.Fatal(err)
		}
		defer near.Close()
		fingerprints := map[string]bool{}
		for scheme, s := range stores {
			s.Take()
			d, err := OpenFiles(t.Context(), []string{scheme + "://data/" + name}, o)
			if err != nil {
				t.Fatal(err)
			}
			retried := int(d.fetched().Retries) // attempts that were late on a busy machine
			if count := s.Take(); count.Requests-retried > requests+map[bool]int{true: 4}[strings.HasPrefix(name, "lines") || strings.HasPrefix(name, "shards")] {
				t.Errorf("%s://%s: opening takes %+v", scheme, name, count)
			}
			f, err := d.Fingerprint(t.Context())
			if err != nil || !bytes.Equal(rowsOf(t, d), rowsOf(t, near)) || d.fetched().Bytes != d.fetched().Planned {
				t.Errorf("%s://%s: %v, or other rows, or %+v", scheme, name, err, d.fetched())
			}
			fingerprints[f.String()] = true
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}
		if len(fingerprints) != 1 {
			t.Errorf("%s: %v", name, fingerprints)
		}
	}
	var said strings.Builder
	o.Split, environment["AWS_SESSION_TOKEN"] = "", "hunter4"
	for _, name := range []string{"s3://data/hive", "s3://data/none", "s3://data/*", "gs://data/none/*.parquet", "gs://data", "s3a://data/hive", "s3://AKID:hunter2@data/hive", "gs://x:hunter2@data/*/*", "s3://da*/x", "s3n://AKID:hunter2@data/x"} {
		d, err := OpenFiles(t.Context(), []string{name}, o)
		fmt.Fprintf(&said, "%v %+v\n", err, err)
		if d != nil {
			_ = d.Close()
		}
	}
	_, err := OpenFiles(t.Context(), []string{"s3://AKID:hunter2@data/x", "x.parquet"}, o)
	fmt.Fprintf(&said, "%+v\n", err)
	err = writeAll(&said, cache)
	if err != nil || strings.Contains(said.String(), "hunter") || strings.Contains(said.String(), "AKID") || !strings.Contains(said.String(), "only of gs, hf, http, https, s3") {
		t.Errorf("%v: %.3000q", err, said.String())
	}
}

// TestBucketUnderFaults: epochs over a store with 5 % faults, in listings too, have the bytes of epochs over the disk.
func TestBucketUnderFaults(t *testing.T) {
	const files = 40
	data := webFiles(t)["/plain.parquet"]
	near, err := OpenFiles(t.Context(), slices.Repeat([]string{"testdata/parquet/plain.parquet"}, files), Options{Duplicates: "allow"})
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	want := rowsOf(t, near)
	retries := int64(0)
	for seed := range uint64(4) {
		google := seed%2 == 1
		s := far.NewStore("data")
		s.Latency, s.Share, s.Faults, s.Seed, s.Page, s.Google = 30*time.Millisecond, 0.05, far.Passing, seed, 7, google
		for i := range files {
			s.Put(fmt.Sprintf("train/%03d.parquet", i), data)
		}
		synctest.Test(t, func(t *testing.T) {
			dial, stop := far.Serve(s)
			defer stop()
			getenv := func(name string) string {
				return map[string]string{"AWS_ENDPOINT_URL": "http://host", "STORAGE_EMULATOR_HOST": "host", "AWS_EC2_METADATA_DISABLED": "true"}[name]
			}
			open, scheme := bucket.NewS3, "s3"
			if google {
				open, scheme = bucket.NewGoogle, "gs"
			}
			op, err := open(remote.NewOpener(remote.New(dial)), getenv)
			if err != nil {
				t.Fatal(err)
			}
			d, err := OpenFiles(context.Background(), []string{scheme + "://data/train/*.parquet"}, Options{Opener: op, Cache: t.TempDir(), Duplicates: "allow"})
			if err != nil {
				t.Fatal(err)
			}
			if c := op.Counts(); c.Requests-c.Retries > files+2*(files/7+1) {
				t.Errorf("opening takes %+v", c)
			}
			for range 2 {
				if !bytes.Equal(rowsOf(t, d), want) {
					t.Errorf("%s, seed %d: other rows", scheme, seed)
				}
			}
			retries += op.Counts().Retries
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	if retries == 0 {
		t.Error("no request was tried again")
	}
}
