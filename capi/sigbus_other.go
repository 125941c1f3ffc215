//go:build !linux

package main

import "github.com/meshfeed/meshfeed/arrowio"

// faultHandler is nil: files are mapped on Linux only.
func faultHandler() arrowio.FaultHandler { return nil }
