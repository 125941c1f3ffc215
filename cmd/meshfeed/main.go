// Command meshfeed inspects Arrow data and plans how it reaches a device mesh.
//
//	meshfeed inspect FILE…             list fields, row shapes, files, and columns that cannot be arrays
//	meshfeed plan LAYOUT.json          draw which device holds and which process reads what
//	meshfeed check LAYOUT.json…        list the problems of layouts; an exit status for CI
//	meshfeed advise MODEL|DOC.json     plan how to split a model over devices: memory, time, input
//	meshfeed memory MEMORY.json        list what the arrays of a model take on a device
//	meshfeed draw DIAGRAM              draw a matmul, a pipeline, a collective and other diagrams
//	meshfeed explain [CODE]            explain a problem or an assumption, and the remedy
//	meshfeed verify FILE…              read everything once: bounds, counts, hash
//	meshfeed convert FILE… FOLDER      write a dataset as Arrow IPC files that are fast to shuffle
//	meshfeed bench LAYOUT.json FILE…   measure rows and bytes per second, and name the limit
//	meshfeed schema [KIND]             print the JSON Schema of layout, strategy, memory or diagram documents
//	meshfeed page [DOC.json]           write the browser page as one HTML file
//	meshfeed serve [DOC.json]          serve the browser page on this machine
//	meshfeed devices SPEC              list the devices of a backend
//	meshfeed selfcheck                 check and measure loading on the devices that JAX sees
//	meshfeed doctor [PATH…]            list versions, devices, limits, file systems, and problems
//
// With --json an error is printed to standard output, too: {"error": {"code", "message", "hint"}}.
//
// The exit status is 0 on success, 1 when a check finds a problem, 2 when the
// command cannot do its work, and 130 after Ctrl-C.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/meshfeed/meshfeed/core/gomlxfeed"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// Exit statuses.
const (
	exitSuccess     = 0
	exitProblem     = 1
	exitFailure     = 2
	exitInterrupted = 130
)

// errProblem reports that a check found a problem, which is already printed.
var errProblem = errors.New("a check found a problem")

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
		ended <- exitFailure
	})
	os.Exit(exitStatus(ctx, ended, os.Stderr))
}

// gracePeriod bounds how long a run may take to end after Ctrl-C.
const gracePeriod = 100 * time.Millisecond

// exitStatus waits for the exit status of a run. After Ctrl-C it waits for the
// grace period only, because a read of standard input or of a disk cannot be
// canceled.
func exitStatus(ctx context.Context, ended <-chan int, diagnostics io.Writer) int {
	select {
	case code := <-ended:
		return code
	case <-ctx.Done():
	}
	select {
	case code := <-ended:
		return code
	case <-time.After(gracePeriod):
		fmt.Fprintln(diagnostics, "meshfeed: interrupted")
		return exitInterrupted
	}
}

// run executes one command line and returns its exit status.
func run(ctx context.Context, args []string, in io.Reader, out, diagnostics io.Writer) int {
	cmd := newRoot()
	cmd.SetArgs(append([]string{}, args...)) // never nil, which would mean the arguments of the process
	cmd.SetIn(in)
	written := &output{Writer: out}
	cmd.SetOut(written)
	cmd.SetErr(diagnostics)
	err := verbless(cmd, args)
	if err == nil {
		err = cmd.ExecuteContext(ctx)
	}
	if written.err != nil && ctx.Err() == nil {
		err = written.err
	}
	switch {
	case err == nil:
		return exitSuccess
	case errors.Is(err, errProblem):
		return exitProblem
	case ctx.Err() != nil:
		fmt.Fprintln(diagnostics, "meshfeed: interrupted")
		return exitInterrupted
	}
	fmt.Fprintln(diagnostics, "meshfeed:", describe(err))
	if slices.Contains(args, "--json") && !written.began {
		_ = writeJSON(out, failureOf(err)) // an error of this write has no better place than the one above
	}
	return exitFailure
}

// verbless returns the error of a verb that does not exist. Package cobra would rather print
// the help of the command, or the error of a flag.
func verbless(root *cobra.Command, args []string) error {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") || strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		return nil
	}
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(args...)
	if verb, _, err := root.Find(args); err == nil && verb != root {
		return nil
	}
	return knownVerb(root, args[:1])
}

// failure is the JSON of an error, for a command line with --json.
type failure struct {
	Error struct {
		Code    string `json:"code"`
		Op      string `json:"op,omitempty"`
		Message string `json:"message"`
		Hint    string `json:"hint,omitempty"`
		Path    string `json:"path,omitempty"` // the file, or the JSON Pointer into a document
	} `json:"error"`
}

func failureOf(err error) *failure {
	f := &failure{}
	f.Error.Code, f.Error.Message = status.CodeOf(err).String(), asFlags(err.Error())
	if e, ok := errors.AsType[*status.Error](err); ok {
		f.Error.Op, f.Error.Message, f.Error.Hint = e.Op, asFlags(e.Msg), asFlags(e.Hint)
		f.Error.Path, _ = e.Attr("path").(string)
	}
	return f
}

// describe formats an error: one line for the message, one for the remedy.
func describe(err error) string {
	e, ok := errors.AsType[*status.Error](err)
	if !ok || e.Hint == "" {
		return visible(asFlags(err.Error()))
	}
	short := *e
	short.Hint = ""
	return visible(asFlags(short.Error())) + "\n  " + visible(asFlags(e.Hint))
}

// argument is an argument of mf.open in a hint, and what Go and C have in its place.
var argument = regexp.MustCompile(`\b(split|duplicates)="([^" ]+)"(?: \([^()]*C: [A-Z_]+\))?`)

// columns is the argument columns of mf.open in a hint: a list, or nothing after the sign.
var columns = regexp.MustCompile(`\bcolumns=(?:\["(.*?)"(, …)?\])?`)

// asFlags replaces arguments of Python and options of Go in a text by flags of the command.
func asFlags(text string) string {
	text = columns.ReplaceAllStringFunc(text, func(list string) string {
		names := columns.FindStringSubmatch(list)[1]
		if names == "" {
			return "--columns"
		}
		return `--columns "` + strings.ReplaceAll(names, `", "`, ",") + `"`
	})
	return wording.Options(argument.ReplaceAllString(text, "--$1 $2"), "--", "-")
}
