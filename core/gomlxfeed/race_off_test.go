//go:build !race

package gomlxfeed

const mayGrow = 8 << 20 // less than a kilobyte per batch
