//go:build !linux

package main

import "github.com/meshfeed/meshfeed/arrowio"

// faultHandler returns nil, because files are mapped on Linux only.
func faultHandler() arrowio.FaultHandler { return nil }
