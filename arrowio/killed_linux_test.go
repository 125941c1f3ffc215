package arrowio_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/arrowio/blob/blobtest"
	"github.com/meshfeed/meshfeed/tests/far"
	"github.com/meshfeed/meshfeed/tests/random"
)

// hashOfRows opens four files, and hashes rows that need all their units.
func hashOfRows(t *testing.T, pattern string, o arrowio.Options) string {
	t.Helper()
	ds, err := arrowio.OpenFiles(t.Context(), []string{pattern}, o)
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	return fmt.Sprintf("hash %x", sha256.Sum256(gatherSteps(t, ds, 8, true)))
}

// fetcher returns a process that fetches the files of a server into a folder, and what it will print.
func fetcher(t *testing.T, pattern, folder string) (*exec.Cmd, *bytes.Buffer) {
	c, out := exec.Command(os.Args[0], "-test.run=^TestKilledFetches$", "-test.v"), new(bytes.Buffer)
	c.Env, c.Stdout = append(os.Environ(), "MESHFEED_TEST_PATTERN="+pattern, "MESHFEED_TEST_FOLDER="+folder), out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c, out
}

// TestKilledFetches: four processes with one folder fetch each byte once. If processes are killed while they
// fetch, those that use the folder next have all rows, and nothing else is left in it.
func TestKilledFetches(t *testing.T) {
	if pattern := os.Getenv("MESHFEED_TEST_PATTERN"); pattern != "" {
		fmt.Println(hashOfRows(t, pattern, arrowio.Options{Cache: os.Getenv("MESHFEED_TEST_FOLDER")}))
		return
	}
	s, near, total := &far.Server{Files: map[string][]byte{}, Latency: 5 * time.Millisecond}, blobtest.Memory{}, int64(0)
	for i := range 4 {
		data := parquetGroups(8, 30_000, 1, byte(i))
		s.Files[fmt.Sprintf("/%d.parquet", i)], near[fmt.Sprintf("%d.parquet", i)] = data, data
		total += int64(len(data))
	}
	server := httptest.NewServer(s)
	defer server.Close()
	pattern, folder := server.URL+"/{0..3}.parquet", t.TempDir()
	want := hashOfRows(t, "*.parquet", arrowio.Options{Opener: near, Cache: "memory"})
	var said [4]*bytes.Buffer
	var all [4]*exec.Cmd
	for i := range all {
		all[i], said[i] = fetcher(t, pattern, folder)
	}
	for i, c := range all {
		if err := c.Wait(); err != nil || !strings.Contains(said[i].String(), want) {
			t.Errorf("%v: %s", err, said[i])
		}
	}
	const ends = 4 * 4 * 64 << 10 // of each file, for each process
	if count := s.Take(); count.Bytes > total+ends || count.Bytes < total*3/4 {
		t.Errorf("%+v for %d bytes", count, total)
	}
	r := random.New(t)
	folder = t.TempDir()
	for range random.Count(5, 50) {
		for i := range 2 {
			all[i], said[i] = fetcher(t, pattern, folder)
		}
		time.Sleep(time.Duration(r.IntN(120)) * time.Millisecond) // the moment of the kill
		for i := range 2 {
			_ = all[i].Process.Kill()
			if _ = all[i].Wait(); strings.Contains(said[i].String(), "hash ") && !strings.Contains(said[i].String(), want) {
				t.Error(said[i])
			}
		}
	}
	if got := hashOfRows(t, pattern, arrowio.Options{Cache: folder}); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	c, err := arrowio.OpenCache(folder)
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.Entries()
	for _, e := range list {
		if e.Scratch || e.InUse || e.Dataset != server.URL || e.Columns != "a, c" {
			t.Errorf("%+v", e)
		}
	}
	if err != nil || len(list) == 0 {
		t.Errorf("%d entries, %v", len(list), err)
	}
}
