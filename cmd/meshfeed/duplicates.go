package main

import (
	"github.com/spf13/cobra"

	"github.com/meshfeed/meshfeed/arrowio"
)

// duplicatesFlag adds the flag that allows a file to come twice.
func duplicatesFlag(cmd *cobra.Command, o *arrowio.Options) {
	cmd.Flags().StringVar(&o.Duplicates, "duplicates", "refuse", "refuse or allow a file that comes twice")
}
