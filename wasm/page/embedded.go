//go:build page

package page

import "embed"

// html is the page as one file.
//
//go:embed dist/layout.html
var html []byte

// folder has the files of the page for a web server; see Hosted.
//
//go:embed dist/hosted
var folder embed.FS
