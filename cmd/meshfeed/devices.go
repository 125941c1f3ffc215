package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/meshfeed/meshfeed/core/gomlxfeed"
	"github.com/meshfeed/meshfeed/core/gomlxfeed/selfcheck"
)

// devicesOptions holds the flags of the verb devices.
type devicesOptions struct {
	json, check bool
	minutes     float64
	seed        uint64
	open        gomlxfeed.OpenOptions
}

func newDevices() *cobra.Command {
	var o devicesOptions
	cmd := &cobra.Command{
		Use:   "devices SPEC",
		Short: "list the devices of a backend, or check and measure them",
		Long: `Opens a GoMLX backend and lists its devices. SPEC is one of

  go                            the pure-Go engine, one device
  virtual:N                     N devices over the pure-Go engine
  xla:/abs/plugin.so?devices=N  a PJRT plugin for CPU, CUDA or TPU; devices= is optional

A plugin is named by its absolute path: meshfeed neither searches nor downloads. The plugin is first
started in a child process, so that a crash or a hang becomes an error. Plugins need a command built
with -tags xla.

With --check random batches are sent to the devices, every shard is read back and compared, and the
time is measured. The result is a page of Markdown to paste into an issue.

The exit status is 0 if the backend is usable, 1 if a check fails, and 2 if the backend is unusable;
the message says why.`,
		Example: "  meshfeed devices virtual:8\n  meshfeed devices --json 'xla:/opt/xla_cpu_pjrt.so?devices=8'",
		Args:    need(1, 1, "one SPEC, such as virtual:8"),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	cmd.Flags().BoolVar(&o.check, "check", false, "check and measure the devices")
	cmd.Flags().Float64Var(&o.minutes, "minutes", 1, "with --check: about how long to measure")
	cmd.Flags().Uint64Var(&o.seed, "seed", 0, "with --check: which random layouts to try")
	cmd.Flags().BoolVar(&o.json, "json", false, "print as JSON")
	cmd.Flags().DurationVar(&o.open.Timeout, "timeout", 20*time.Second, "the longest time for a plugin to start")
	cmd.Flags().BoolVar(&o.open.NoPreflight, "no-preflight", false, "load a plugin without starting it in a child process first")
	return cmd
}

// mostMinutes bounds the flag --minutes.
const mostMinutes = 60

// run opens the devices, and lists or checks them.
func (o devicesOptions) run(cmd *cobra.Command, spec string) (err error) {
	if !(o.minutes > 0 && o.minutes <= mostMinutes) {
		return usage(cmd, fmt.Sprintf("--minutes is %g, but must be more than 0 and at most %d", o.minutes, mostMinutes))
	}
	for _, flag := range []string{"minutes", "seed"} {
		if !o.check && cmd.Flags().Changed(flag) {
			return usage(cmd, fmt.Sprintf("--%s needs --check", flag))
		}
	}
	d, err := gomlxfeed.Open(cmd.Context(), spec, o.open)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	switch {
	case o.check:
		return checkDevices(cmd, d, selfcheck.Options{Duration: time.Duration(o.minutes * float64(time.Minute)), Seed: o.seed}, o.json)
	case o.json:
		return writeJSON(cmd.OutOrStdout(), d.Facts())
	}
	return printDevices(cmd.OutOrStdout(), d.Facts())
}

// checkDevices runs the self-check and prints its report.
func checkDevices(cmd *cobra.Command, d *gomlxfeed.Devices, o selfcheck.Options, asJSON bool) error {
	o.Progress = func(part string) { showStatus(cmd.ErrOrStderr(), part) }
	r, err := selfcheck.Run(cmd.Context(), d, o)
	showStatus(cmd.ErrOrStderr(), "")
	if err != nil {
		return err
	}
	if asJSON {
		err = writeJSON(cmd.OutOrStdout(), r)
	} else {
		_, err = io.WriteString(cmd.OutOrStdout(), r.Markdown())
	}
	if err == nil && !r.Passed() {
		return errProblem
	}
	return err
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
