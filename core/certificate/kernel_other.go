//go:build !amd64

package certificate

import "github.com/meshfeed/meshfeed/core/internal/cpu"

type sums [3][4]uint64

func countKernel(cpu.Level, *sums, *int64, int, uint64, uint64) (padded bool) { return true }
