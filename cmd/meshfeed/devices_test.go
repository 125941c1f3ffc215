package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/gomlxfeed"
)

// devices runs "meshfeed devices" and returns its output and its exit status.
func devices(args ...string) (out, diagnostics string, code int) {
	var stdout, stderr bytes.Buffer
	code = run(context.Background(), append([]string{"devices"}, args...), strings.NewReader(""), &stdout, &stderr)
	return stdout.String(), stderr.String(), code
}

func TestDevicesOfAPlugin(t *testing.T) {
	var out bytes.Buffer
	f := gomlxfeed.Facts{Name: "xla-cuda", Platform: "cuda", API: "PJRT 0.116", Devices: []string{"NVIDIA H100"}, DTypes: []dtype.Type{dtype.Float32, dtype.Int8}}
	if err := printDevices(&out, f); err != nil {
		t.Fatal(err)
	}
	want := `xla-cuda: 1 device (platform cuda, PJRT 0.116)
device memory, reached by transfers

  0  NVIDIA H100

element types: float32, int8
`
	if out.String() != want {
		t.Errorf("got %s\nwant %s", out.String(), want)
	}
}
