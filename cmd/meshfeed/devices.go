package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/meshfeed/meshfeed/core/gomlxfeed"
)

func newDevices() *cobra.Command {
	var asJSON bool
	var backend string
	var o gomlxfeed.OpenOptions
	cmd := &cobra.Command{
		Use:   "devices --backend SPEC",
		Short: "say what devices a backend offers, or why it cannot be used",
		Long: `Opens the devices of a GoMLX backend and says what they are. SPEC is one of

  go                            the pure-Go engine, one device
  virtual:N                     N devices over the pure-Go engine
  xla:/abs/plugin.so?devices=N  a PJRT plugin for CPU, CUDA or TPU; devices= may be left out

A plugin is named by its whole path: nothing is searched for or downloaded. It is tried in a child
process first, so that one that crashes or hangs gives an error. Plugins need a command built with
-tags xla.

The exit status is 0 if the backend can be used, and 2 if it cannot; the message says exactly why.`,
		Example: "  meshfeed devices --backend virtual:8\n  meshfeed devices --json --backend 'xla:/opt/xla_cpu_pjrt.so?devices=8'",
		Args:    need(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if backend == "" {
				return usage(cmd, "expected --backend SPEC")
			}
			d, err := gomlxfeed.Open(cmd.Context(), backend, o)
			if err != nil {
				return err
			}
			facts := d.Facts()
			if err := d.Close(); err != nil {
				return err
			}
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), facts)
			}
			return printDevices(cmd.OutOrStdout(), facts)
		},
	}
	cmd.Flags().StringVar(&backend, "backend", "", "the `SPEC` of the backend")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	cmd.Flags().DurationVar(&o.Timeout, "timeout", 20*time.Second, "how long a plugin may take to start")
	cmd.Flags().BoolVar(&o.NoPreflight, "no-preflight", false, "load a plugin without trying it in a child process first")
	return cmd
}

// printDevices lists the first devices: thousands of virtual ones tell no more.
func printDevices(out io.Writer, f gomlxfeed.Facts) error {
	const most = 16
	memory := "memory of its own, reached by transfers"
	if f.Shared {
		memory = "shared memory: writing there is the transfer"
	}
	from := "platform " + f.Platform
	if f.API != "" {
		from += ", " + f.API
	}
	fmt.Fprintf(out, "%s: %s (%s)\n%s\n\n", f.Name, counted(len(f.Devices), "device"), from, memory)
	listed := f.Devices[:min(most, len(f.Devices))]
	width := len(fmt.Sprint(len(listed) - 1))
	for i, text := range listed {
		fmt.Fprintf(out, "  %*d  %s\n", width, i, text)
	}
	if more := len(f.Devices) - most; more > 0 {
		fmt.Fprintf(out, "  and %s more; --json lists all\n", grouped(int64(more)))
	}
	names := make([]string, len(f.DTypes))
	for i, t := range f.DTypes {
		names[i] = t.String()
	}
	_, err := fmt.Fprintf(out, "\nelement types: %s\n", strings.Join(names, ", "))
	return err
}
