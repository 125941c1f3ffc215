//go:build page

package page

import "embed"

//go:embed dist/layout.html
var html []byte

//go:embed dist/hosted
var folder embed.FS
