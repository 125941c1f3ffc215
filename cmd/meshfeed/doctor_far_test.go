//go:build !nofar

package main

import (
	"bytes"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/meshfeed/meshfeed/tests/far"
)

// farReport returns what doctor says about an address.
func farReport(t *testing.T, address string, timeout time.Duration) string {
	t.Helper()
	r := &report{}
	r.far(t.Context(), address, timeout)
	var out bytes.Buffer
	if err := r.print(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func expect(t *testing.T, got string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(got, part) {
			t.Errorf("%q is missing in:\n%s", part, got)
		}
	}
}

func TestDoctorMeasuresAServer(t *testing.T) {
	s := &far.Server{Files: map[string][]byte{"/a-00.bin": make([]byte, 10<<20), "/small": make([]byte, 1000)}, Latency: time.Millisecond}
	server := httptest.NewServer(s)
	defer server.Close()
	got := farReport(t, server.URL+"/a-{00..12}.bin?signature=secret", time.Minute)
	expect(t, got, "/a-00.bin, 10.0 MiB, opened in", "first byte", "median of 5", "/s by 1, ", "/s by 4, ", "/s by 16 reads at once", "up to 16 are made", "no problem found")
	if strings.Contains(got, "secret") || strings.Contains(got, "listing") {
		t.Error(got)
	}
	if n := s.Take(); n.Bytes > 21*8<<20+64<<10+5 || n.Requests != 1+5+21 {
		t.Errorf("%+v", n)
	}
	expect(t, farReport(t, server.URL+"/small", time.Minute), "1000 B, opened", "too small to measure the rate")
	expect(t, farReport(t, server.URL+"/none", time.Minute), "there is no such file (404 Not Found)", "check the address")
	expect(t, farReport(t, server.URL+"/", time.Minute), "a web server does not list its files")
	expect(t, farReport(t, "quic://x", time.Minute), `nothing here opens URLs of the scheme "quic"`)
	s.User = "me:hunter2"
	expect(t, farReport(t, server.URL+"/small", time.Minute), "the server denies access (401 Unauthorized)", "give the address with a user and a password")
	s.Share, s.Faults = 1, []far.Fault{far.Silent}
	expect(t, farReport(t, server.URL+"/small", 50*time.Millisecond), "/small: no answer within 50ms", "wait longer by --timeout")
}

func TestDoctorMeasuresABucket(t *testing.T) {
	s := far.NewStore("data")
	s.ID, s.Secret = "AKIDEXAMPLE", "hunter2"
	s.Put("train/0.parquet", make([]byte, 9<<20))
	server := httptest.NewServer(s)
	defer server.Close()
	t.Setenv("AWS_ENDPOINT_URL", server.URL)
	t.Setenv("AWS_ACCESS_KEY_ID", s.ID)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s.Secret)
	t.Setenv("AWS_SESSION_TOKEN", "")
	t.Setenv("AWS_REGION", s.Region)
	got := farReport(t, "s3://data/train", time.Minute)
	expect(t, got, "the environment", "1 item in", "s3://data/train/0.parquet, 9.0 MiB, opened in", "by 16 reads at once")
	if strings.Contains(got, "hunter2") {
		t.Error(got)
	}
	t.Setenv("AWS_SECRET_ACCESS_KEY", "other")
	expect(t, farReport(t, "s3://data/train", time.Minute), "error: s3://data/train: the signature", "the environment")
}

func TestDoctorMeasuresTheHub(t *testing.T) {
	store := &far.Server{Files: map[string][]byte{}}
	away := httptest.NewServer(store)
	defer away.Close()
	hub := &far.Hub{Store: store, Away: away.URL, Files: map[string][]byte{}, Token: "hf_secret"}
	server := httptest.NewServer(hub)
	defer server.Close()
	hub.Put("data/train/0.parquet", make([]byte, 2<<20))
	hub.Put("data/train/1.parquet", make([]byte, 9<<20))
	hub.Put("README.md", make([]byte, 10))
	t.Setenv("HF_ENDPOINT", server.URL)
	t.Setenv("HF_TOKEN", "hf_secret")
	for name, items := range map[string]string{"hf://datasets/org/name/data": "1 item in", "hf://datasets/org/name/data/train/*.parquet": "2 items in"} {
		got := farReport(t, name, time.Minute)
		expect(t, got, "data/train/1.parquet, 9.0 MiB, opened in", items, "HF_TOKEN", "by 16 reads at once")
		if strings.Contains(got, "hf_secret") {
			t.Error(got)
		}
	}
	t.Setenv("HF_TOKEN", "wrong")
	expect(t, farReport(t, "hf://datasets/org/name/data", time.Minute), "set HF_TOKEN or run: hf auth login")
}
