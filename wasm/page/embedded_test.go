//go:build page

package page_test

import (
	"bytes"
	"io/fs"
	"testing"

	"github.com/meshfeed/meshfeed/wasm/page"
)

func TestHTML(t *testing.T) {
	plain, err := page.HTML(nil)
	if err != nil {
		t.Fatal(err)
	}
	with, err := page.HTML([]byte(`{"meshfeed":1,"arrays":{"</script><!--":{}}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []byte(`id="document">{"meshfeed":1,"arrays":{"\u003c/script\u003e\u003c!--":{}}}</script>`)
	if !bytes.Contains(with, want) {
		t.Errorf("the page does not hold %s", want)
	}
	if n := len(with) - len(plain) - len(want) + len(`id="document"></script>`); n != 0 {
		t.Errorf("%d more bytes than the layout's changed", n)
	}
}

func TestHosted(t *testing.T) {
	files, err := page.Hosted()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"index.html", "meshfeed.wasm", "strategy.wasm"} {
		if info, err := fs.Stat(files, name); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
