//go:build race

package gomlxfeed

const mayGrow = 64 << 20 // the race detector allocates memory too
