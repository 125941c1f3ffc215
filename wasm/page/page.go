// Package page holds the layout page: a browser page that checks and draws a
// layout, with the layout core inside as WebAssembly. It is written in
// TypeScript (src) and built by `make page` into one HTML file, which works
// from file:// without a network.
//
// The page is part of a binary that is built with the tag `page`, as those of
// the Makefile and of the wheels are. Elsewhere everything here says
// Unsupported.
package page

import (
	"bytes"
	"io/fs"

	"github.com/meshfeed/meshfeed/core/status"
)

// slot is where the page looks for a layout to begin with.
const slot = `<script type="application/json" id="layout">`

// HTML gives the page as one file that begins with a layout document, or with
// an example where document is empty. Whether the document is right is for the
// page to say; its bytes are kept, but for the characters that could end a
// script, which are escaped as JSON allows.
func HTML(document []byte) ([]byte, error) {
	page, err := single()
	if err != nil || len(document) == 0 {
		return page, err
	}
	before, after, found := bytes.Cut(page, []byte(slot))
	if !found {
		return nil, status.New(status.Internal, "page", "the page has no place for a layout")
	}
	return bytes.Join([][]byte{before, []byte(slot), escape(document), after}, nil), nil
}

// escape writes the characters that mean something in HTML as \u escapes. In
// JSON they stand in strings only, where both are the same.
func escape(document []byte) []byte {
	document = bytes.ReplaceAll(document, []byte("<"), []byte(`\u003c`))
	return bytes.ReplaceAll(document, []byte(">"), []byte(`\u003e`))
}

// Hosted gives the files of the page for a web server: index.html, its script
// and meshfeed.wasm, which the browser compiles while it arrives.
func Hosted() (fs.FS, error) { return hosted() }
