//go:build xla

package main

import _ "github.com/meshfeed/meshfeed/core/gomlxfeed/xla" // registers the kind "xla"

func init() { withXLA = true }
