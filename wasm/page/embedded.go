//go:build page

package page

import (
	"embed"
	"io/fs"
)

//go:embed dist/layout.html
var html []byte

//go:embed dist/hosted
var folder embed.FS

func single() ([]byte, error) { return append([]byte(nil), html...), nil }

func hosted() (fs.FS, error) { return fs.Sub(folder, "dist/hosted") }
