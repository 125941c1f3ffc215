package main

import (
	"github.com/spf13/cobra"

	"github.com/meshfeed/meshfeed/core/status"
)

// newSelfcheck builds a subcommand that only refers to the Python package, because
// the self-check needs JAX. The package's own "meshfeed" script runs the self-check.
func newSelfcheck() *cobra.Command {
	return &cobra.Command{
		Use:                "selfcheck",
		Short:              "check and measure loading on the devices that JAX sees (Python package only)",
		DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return status.New(status.Unsupported, "selfcheck", "the self-check needs JAX and runs in the Python package only").
				WithHint("run: python -m meshfeed selfcheck --help")
		},
	}
}
