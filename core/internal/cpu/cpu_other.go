//go:build !amd64

package cpu

// Best gives the highest level that may be used.
func Best() Level { return None }
