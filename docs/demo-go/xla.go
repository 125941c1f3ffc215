//go:build xla

package main

import _ "github.com/meshfeed/meshfeed/core/gomlxfeed/xla" // PJRT plugins for CPU, CUDA and TPU
