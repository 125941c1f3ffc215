//go:build xla

package main

// With the tag xla (make lib XLA=1) the library also opens PJRT plugins. It is a
// tag because go-xla makes the library several times as large.
import _ "github.com/meshfeed/meshfeed/core/gomlxfeed/xla"
