//go:build !page

package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

const small = `{"meshfeed":1,"mesh":{"axes":[["data",2]]},"arrays":{"x":{"shape":["B"],"dtype":"int32","spec":["data"]}},"batch":{"size":4}}`

func TestWithoutThePage(t *testing.T) {
	for _, args := range [][]string{{"page"}, {"page", "-"}, {"serve"}, {"serve", "-"}, {"plan", "--html", "-"}, {"check", "--wasm", "-"}} {
		var out, diagnostics bytes.Buffer
		code := run(context.Background(), args, strings.NewReader(small), &out, &diagnostics)
		want := "meshfeed: " + args[0] + `: this build carries no page, since it was built without the tag page
  pip install builds it in unless MESHFEED_PAGE=0 is set; in a checkout run: make page lib
`
		if code != exitFailure || out.Len() > 0 || diagnostics.String() != want {
			t.Errorf("%v: exit %d, %q\ngot  %s\nwant %s", args, code, out.String(), diagnostics.String(), want)
		}
	}
}
