//go:build !page

package page_test

import (
	"testing"

	"github.com/meshfeed/meshfeed/wasm/page"
)

func TestAbsent(t *testing.T) {
	want := "page: this build carries no page, since it was built without the tag page; " +
		"pip install builds it in unless MESHFEED_PAGE=0 is set; in a checkout run: make page lib"
	if _, err := page.HTML(nil); err == nil || err.Error() != want {
		t.Errorf("HTML: %v, want %s", err, want)
	}
	if _, err := page.Hosted(); err == nil || err.Error() != want {
		t.Errorf("Hosted: %v, want %s", err, want)
	}
}
