package main

import (
	"github.com/spf13/cobra"

	"github.com/meshfeed/meshfeed/core/sampler"
)

// orderFlag adds --order.
func orderFlag(cmd *cobra.Command, order *string, also string) {
	cmd.Flags().StringVar(order, "order", "", "an order of the records, such as shuffle, blocks (the dataset's units), or\nblocks:W:B: windows of W blocks of B records; 0 for the default"+also)
}

// orderNamed returns the name of an order as the library takes it. As in Python, the user
// may leave the version of an order without parameters out.
func orderNamed(given string) string {
	switch given {
	case "shuffle":
		return sampler.Shuffle
	case "sequential":
		return sampler.Sequential
	}
	return given
}
