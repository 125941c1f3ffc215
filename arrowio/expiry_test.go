package arrowio

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/tests/far"
)

// TestKeysExpireInARun: the store refuses a key in the middle of a run. The next key is fetched once for each time, and all
// rows are the rows of the disk.
func TestKeysExpireInARun(t *testing.T) {
	const files = 12
	s := far.NewStore("data")
	for i := range files {
		s.Put(fmt.Sprintf("%02d.parquet", i), webFiles(t)["/plain.parquet"])
	}
	var fetches atomic.Int64
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := fetches.Add(1)
		fmt.Fprintf(w, `{"AccessKeyId":"AKID%d","SecretAccessKey":"planted-%[1]d","Token":"token-%[1]d","Expiration":"2999-01-01T00:00:00Z"}`, n)
	}))
	defer agent.Close()
	server := httptest.NewServer(s)
	defer server.Close()
	rotate := func(n int64) {
		s.Expired = s.Token
		s.ID, s.Secret, s.Token = fmt.Sprintf("AKID%d", n), fmt.Sprintf("planted-%d", n), fmt.Sprintf("token-%d", n)
	}
	rotate(1)
	environment := map[string]string{"AWS_ENDPOINT_URL": server.URL, "AWS_CONTAINER_CREDENTIALS_FULL_URI": agent.URL}
	d, err := OpenFiles(t.Context(), []string{"s3://data/*.parquet"}, Options{Cache: t.TempDir(), Duplicates: "allow", Getenv: func(name string) string { return environment[name] }})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	near, err := OpenFiles(t.Context(), slices.Repeat([]string{"testdata/parquet/plain.parquet"}, files), Options{Duplicates: "allow"})
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	gather := func(d *Dataset, step int64) []byte {
		g, err := d.Gatherer([]source.Part{d.Schema().Whole(0)})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		var records []int64
		for r := step * d.Len() / files; r < (step+1)*d.Len()/files; r++ {
			records = append(records, r)
		}
		dst := make([]byte, len(records)*d.Schema().Fields[0].RowBytes())
		if err := g.Gather(context.Background(), source.Draw{}, records, []source.Job{{Rows: [2]int{0, len(records)}, Dst: dst}}); err != nil {
			t.Fatal(err)
		}
		return dst
	}
	for step := range int64(files) {
		if step%4 == 3 {
			rotate(fetches.Load() + 1)
		}
		if !bytes.Equal(gather(d, step), gather(near, step)) {
			t.Errorf("step %d: other rows", step)
		}
	}
	if n := fetches.Load(); n != 4 {
		t.Errorf("%d keys were fetched, want 4", n)
	}
}
