//go:build !page

package page

import "embed"

// Without the build tag page, these variables are empty, and the functions of the
// package return an error.
var (
	html   []byte
	folder embed.FS
)
