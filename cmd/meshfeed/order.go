package main

import "github.com/spf13/cobra"

// orderFlag adds --order.
func orderFlag(cmd *cobra.Command, order *string, also string) {
	cmd.Flags().StringVar(order, "order", "", "an order of the records, such as shuffle, blocks (the dataset's units), or\nblocks:W:B: windows of W blocks of B records; 0 for the default"+also)
}
