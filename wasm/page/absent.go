//go:build !page

package page

import (
	"io/fs"

	"github.com/meshfeed/meshfeed/core/status"
)

func absent() error {
	return status.New(status.Unsupported, "page", "this build carries no page, since it was built without the tag page").
		WithHint("pip install builds it in unless MESHFEED_PAGE=0 is set; in a checkout run: make page lib")
}

func single() ([]byte, error) { return nil, absent() }

func hosted() (fs.FS, error) { return nil, absent() }
