// Command meshfeed looks into Arrow data and plans how it reaches a device mesh.
//
//	meshfeed inspect FILE…             what is in the files, what is loadable, and why not
//	meshfeed plan LAYOUT.json          who holds and who reads what, drawn or as a report
//	meshfeed check LAYOUT.json…        what is wrong with layouts; an exit code for CI
//	meshfeed explain [CODE]            what a problem means, and what to do
//	meshfeed verify FILE…              read everything once: bounds, counts, hash
//	meshfeed bench LAYOUT.json FILE…   rows and bytes per second, and what limits them
//	meshfeed schema                    the JSON Schema of layout documents
//	meshfeed page [LAYOUT.json]        the browser page, as one HTML file
//	meshfeed serve [LAYOUT.json]       the same at an address of this machine
//	meshfeed devices SPEC              what devices a backend offers; --check tries and measures them
//	meshfeed selfcheck                 check and measure loading on the devices that JAX sees
//
// The exit status is 0 when all is well, 1 when a check found something, 2 when
// the command could not do its work, and 130 after Ctrl-C.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/meshfeed/meshfeed/core/gomlxfeed"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// Exit statuses.
const (
	exitFine        = 0
	exitFound       = 1
	exitFailed      = 2
	exitInterrupted = 130
)

// errFound says that a check found something which was already printed.
var errFound = errors.New("found")

func main() {
	gomlxfeed.RunProbe()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ended := make(chan int, 1)
	guard.Go("meshfeed", func() error {
		ended <- run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
		return nil
	}, func(err error) {
		fmt.Fprintln(os.Stderr, "meshfeed:", describe(err))
		ended <- exitFailed
	})
	os.Exit(outcome(ctx, ended, os.Stderr))
}

// patience is how long a run may take to end after Ctrl-C.
const patience = 100 * time.Millisecond

// outcome waits for the exit status of a run. After Ctrl-C it soon goes without:
// a run that reads standard input or waits for a disk hears nothing.
func outcome(ctx context.Context, ended <-chan int, diagnostics io.Writer) int {
	select {
	case code := <-ended:
		return code
	case <-ctx.Done():
	}
	select {
	case code := <-ended:
		return code
	case <-time.After(patience):
		fmt.Fprintln(diagnostics, "meshfeed: interrupted")
		return exitInterrupted
	}
}

// run executes one command line and gives its exit status.
func run(ctx context.Context, args []string, in io.Reader, out, diagnostics io.Writer) int {
	cmd := newRoot()
	cmd.SetArgs(append([]string{}, args...)) // never nil, which would mean the arguments of the process
	cmd.SetIn(in)
	cmd.SetOut(out)
	cmd.SetErr(diagnostics)
	err := cmd.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitFine
	case errors.Is(err, errFound):
		return exitFound
	case ctx.Err() != nil:
		fmt.Fprintln(diagnostics, "meshfeed: interrupted")
		return exitInterrupted
	}
	fmt.Fprintln(diagnostics, "meshfeed:", describe(err))
	return exitFailed
}

// describe gives an error on one line for its message and one for its remedy.
func describe(err error) string {
	var e *status.Error
	if !errors.As(err, &e) || e.Hint == "" {
		return visible(err.Error())
	}
	short := *e
	short.Hint = ""
	return visible(short.Error()) + "\n  " + visible(e.Hint)
}
