//go:build !page

package page

import "embed"

var (
	html   []byte
	folder embed.FS
)
