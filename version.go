// Package meshfeed is the root of the module. It holds nothing but the version;
// Go users import core/loader and arrowio.
package meshfeed

import (
	_ "embed"
	"strings"
)

//go:embed VERSION
var version string

// Version returns the version of the library, the command and the Python package.
func Version() string { return strings.TrimSpace(version) }
