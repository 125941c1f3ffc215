//go:build xla

package main

// With the tag xla the library opens PJRT plugins too: make lib XLA=1. It is a
// tag, because go-xla makes the library several times as large.
import _ "github.com/meshfeed/meshfeed/core/gomlxfeed/xla"
