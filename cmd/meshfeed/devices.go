package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/meshfeed/meshfeed/core/gomlxfeed"
)

// devicesOptions holds the flags of the verb devices.
type devicesOptions struct {
	json bool
	open gomlxfeed.OpenOptions
}

func newDevices() *cobra.Command {
	var o devicesOptions
	cmd := &cobra.Command{
		Use:   "devices SPEC",
		Short: "list the devices of a backend",
		Long: `Opens a GoMLX backend and lists its devices. SPEC is one of

  go                            the pure-Go engine, one device
  virtual:N                     N devices over the pure-Go engine
  xla:/abs/plugin.so?devices=N  a PJRT plugin for CPU, CUDA or TPU; devices= is optional

A plugin is named by its absolute path: meshfeed neither searches nor downloads. The plugin is first
started in a child process, so that a crash or a hang becomes an error. Plugins need a command built
with -tags xla.

The exit status is 0 if the backend is usable, and 2 if it is unusable; the message says why.`,
		Example: "  meshfeed devices virtual:8\n  meshfeed devices --json 'xla:/opt/xla_cpu_pjrt.so?devices=8'",
		Args:    need(1, 1, "one SPEC, such as virtual:8"),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print as JSON")
	cmd.Flags().DurationVar(&o.open.Timeout, "timeout", 20*time.Second, "the longest time for a plugin to start")
	cmd.Flags().BoolVar(&o.open.NoPreflight, "no-preflight", false, "load a plugin without starting it in a child process first")
	return cmd
}

// run opens the devices and lists them.
func (o devicesOptions) run(cmd *cobra.Command, spec string) (err error) {
	d, err := gomlxfeed.Open(cmd.Context(), spec, o.open)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if o.json {
		return writeJSON(cmd.OutOrStdout(), d.Facts())
	}
	return printDevices(cmd.OutOrStdout(), d.Facts())
}

// printDevices lists the first 16 devices. A backend may have thousands of virtual
// devices, which differ only in their numbers.
func printDevices(out io.Writer, f gomlxfeed.Facts) error {
	const most = 16
	memory := "device memory, reached by transfers"
	if f.Shared {
		memory = "shared memory: no transfers"
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
