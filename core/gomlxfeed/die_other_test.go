//go:build !unix

package gomlxfeed

// die is for tests that run where processes get signals.
func die(string) {}
