// Package page contains the browser page. One tab checks and draws a layout, the other plans a
// strategy. The page is written in TypeScript (src), and runs the validator and the planner as
// WebAssembly (wasm/guest). `make page` builds one HTML file, which works from file:// without a
// network.
//
// Binaries built with the tag `page` contain the page; the Makefile and the wheel
// set this tag. In other builds every function returns Unsupported.
package page

import (
	"bytes"
	"io/fs"

	"github.com/meshfeed/meshfeed/core/status"
)

// slot is the element with the page's first document.
const slot = `<script type="application/json" id="document">`

// HTML returns the page as one file that opens with a document, of a layout or of a
// strategy, or with an example if document is empty. HTML does not check the document;
// the page does. It only escapes characters that could end the script element.
func HTML(document []byte) ([]byte, error) {
	if html == nil {
		return nil, absent()
	}
	if len(document) == 0 {
		return bytes.Clone(html), nil
	}
	before, after, found := bytes.Cut(html, []byte(slot))
	if !found {
		return nil, status.New(status.Internal, "page", "the page has no element for a document")
	}
	return bytes.Join([][]byte{before, []byte(slot), escape(document), after}, nil), nil
}

// escape replaces characters with a meaning in HTML by \u escapes. In JSON these
// characters occur in strings only, where an escape is equivalent.
func escape(document []byte) []byte {
	document = bytes.ReplaceAll(document, []byte("<"), []byte(`\u003c`))
	return bytes.ReplaceAll(document, []byte(">"), []byte(`\u003e`))
}

// Hosted returns the files of the page for a web server: index.html, its script
// and meshfeed.wasm, which the browser compiles while it downloads.
func Hosted() (fs.FS, error) {
	if html == nil {
		return nil, absent()
	}
	return fs.Sub(folder, "dist/hosted")
}

func absent() error {
	return status.New(status.Unsupported, "page", "this build carries no page, since it was built without the tag page").
		WithHint("pip install builds it in unless MESHFEED_PAGE=0 is set; in a checkout run: make page lib")
}
