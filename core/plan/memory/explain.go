package memory

import (
	"cmp"

	"github.com/meshfeed/meshfeed/core/problem"
	"github.com/meshfeed/meshfeed/core/sharding"
)

// Explain returns a few sentences about what a problem of this code means and what to
// do, or "" for an unknown code.
func Explain(code problem.Code) string { return cmp.Or(explanations[code], sharding.Explain(code)) }

var explanations = map[problem.Code]string{
	TooLarge:       `The arrays take more than 2^53 bytes of a device, which JSON cannot hold exactly. The cause is nearly always a mistake in a shape.`,
	DeviceCapacity: `A step needs more memory than a device has. It is an error if even the least that the compiler can need is too much, and a warning if only the most is. Partition the arrays over more axes, use more devices, or use a smaller batch.`,
	Replicated:     `An axis holds copies of an array, although it partitions other arrays and could partition this one. Write the spec that the message names, unless the copies are meant. Arrays with copies that waste less than 1 MiB or 1 % of what a device stores are not reported.`,
}
