//go:build !linux

package main

import "github.com/meshfeed/meshfeed/arrowio"

// signals is nothing where no file is mapped.
func signals() arrowio.FaultHandler { return nil }
