package gomlxfeed

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
	"github.com/meshfeed/meshfeed/internal/wording"
)

const (
	defaultTimeout = 20 * time.Second
	maxAnswer      = 16 << 20    // bytes: enough for the descriptions of a million devices
	exitGrace      = time.Second // how long output is read after the child's exit
)

// preflight tries a plugin in a child process.
func preflight(ctx context.Context, s Spec, o OpenOptions) (Facts, error) {
	prober, err := findProber(o.Prober)
	if err != nil {
		return Facts{}, err
	}
	c := child{spec: s, prober: prober, limit: cmp.Or(o.Timeout, defaultTimeout)}
	if err := c.run(ctx); err != nil {
		return Facts{}, err
	}
	if c.last.Error != nil {
		return Facts{}, c.reported(*c.last.Error)
	}
	return *c.last.Facts, c.checkFacts(*c.last.Facts)
}

// findProber returns the path of the program to start.
func findProber(asked string) (string, error) {
	if asked == "" && canProbe.Load() {
		return os.Executable()
	}
	name := cmp.Or(asked, "meshfeed")
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	if asked != "" {
		return "", status.Errorf(status.NotFound, "gomlxfeed", "the prober %q cannot be started", name)
	}
	return "", status.Errorf(status.Unsupported, "gomlxfeed", "no program was found that can try it first").
		WithHint("put a `meshfeed` built with -tags xla on PATH, or name one as the prober; a Go program may call gomlxfeed.RunProbe first in main; without a preflight the plugin is loaded at the risk of this process")
}

// child is one preflight: the process and its output.
type child struct {
	spec   Spec
	prober string
	limit  time.Duration

	greeted bool
	stage   string // the last step that began
	last    line   // the answer, if the child sent one
	garbage string // the first line that does not follow the protocol
	exit    string // how the process ended, as in "exit status 2"
	stderr  tail
}

// run starts the prober and waits for its end. Without an answer it returns an
// error.
func (c *child) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	answers, end, err := os.Pipe()
	if err != nil {
		return status.Errorf(status.IO, "gomlxfeed", "its preflight did not start: %w", err)
	}
	defer answers.Close()
	cmd := c.command(ctx, end)
	err = cmd.Start()
	end.Close()
	if err != nil {
		return status.Errorf(status.IO, "gomlxfeed", "its preflight did not start: %w", err)
	}
	parsed := make(chan struct{})
	guard.Go("gomlxfeed", func() error {
		defer close(parsed)
		c.parse(io.LimitReader(answers, maxAnswer))
		return nil
	}, func(error) {})
	err = cmd.Wait()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // a process that the plugin started keeps standard error open
	}
	_ = answers.SetReadDeadline(time.Now().Add(exitGrace))
	<-parsed
	c.exit = cmd.ProcessState.String()
	return c.outcome(ctx, err)
}

func (c *child) command(ctx context.Context, answers *os.File) *exec.Cmd {
	q, _ := json.Marshal(question{c.spec.String(), c.limit + exitGrace}) // strings and numbers always marshal
	cmd := exec.CommandContext(ctx, c.prober)
	cmd.Env = append(os.Environ(), probeVariable+"="+string(q), "GOTRACEBACK=none")
	cmd.ExtraFiles = []*os.File{answers} // becomes answerFile
	cmd.Stderr = &c.stderr
	cmd.WaitDelay = exitGrace
	return cmd
}

// parse reads the prober's lines.
func (c *child) parse(r io.Reader) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			c.garbage = cmp.Or(c.garbage, wording.FirstLine(printable(lines.Text())), "an empty line")
			continue
		}
		switch {
		case l.Probe == probeVersion:
			c.greeted = true
		case l.Stage != "":
			c.stage = wording.FirstLine(printable(l.Stage))
		default:
			c.last = l
		}
	}
}

// outcome returns the error of a preflight without a usable answer. waited is the
// error of waiting for the process.
func (c *child) outcome(ctx context.Context, waited error) error {
	switch cause := ctx.Err(); {
	case errors.Is(cause, context.Canceled):
		return cancelled(cause)
	case cause != nil:
		return c.error(status.Timeout, "its preflight did not end within %v%s", c.limit, c.doing()).
			WithHint("raise the timeout if the device is slow to start or in use by another program")
	case c.garbage != "":
		return c.error(status.Incompatible, "the prober %q does not follow the preflight protocol; it wrote %q", c.prober, c.garbage).
			WithHint("the prober and this program must be of the same release")
	case !c.greeted:
		return c.error(status.Incompatible, "the prober %q ended without an answer (%s)", c.prober, c.exit).
			WithHint("its main must call gomlxfeed.RunProbe first")
	case waited != nil || c.last.Facts == nil && c.last.Error == nil:
		return c.error(status.Incompatible, "the plugin ended its preflight%s (%s)", c.doing(), c.how()).
			WithHint("the file is damaged, or the plugin does not fit this release or the options; this process did not load it")
	}
	return nil
}

func (c *child) doing() string {
	if c.stage == "" {
		return ""
	}
	return " while " + c.stage
}

// error builds an error that ends with the child's last output.
func (c *child) error(code status.Code, format string, args ...any) *status.Error {
	e := status.Errorf(code, "gomlxfeed", format, args...)
	if last := c.stderr.lastLine(); last != "" {
		e.Msg += "; it printed last: " + last
	}
	return e.With("stderr", c.stderr.String())
}

// reported converts an error that the prober sent.
func (c *child) reported(p probedError) error {
	code := p.Code
	if code >= status.OK || code < status.Internal {
		code = status.Internal
	}
	e := status.Errorf(code, "gomlxfeed", "%s", cmp.Or(wording.FirstLine(printable(p.Message)), "the preflight gave no reason"))
	e.Hint = wording.FirstLine(printable(p.Hint))
	return e.With("stderr", c.stderr.String())
}

// checkFacts rejects an answer that cannot be true.
func (c *child) checkFacts(f Facts) error {
	n, wanted := len(f.Devices), c.spec.Devices
	switch {
	case f.Name == "" || n == 0 && wanted == 0:
		return c.error(status.Incompatible, "it has no devices, or no name")
	case n > mesh.MaxDevices:
		return c.error(status.Incompatible, "it claims %d devices, more than %d", n, mesh.MaxDevices)
	case wanted > 0 && n != wanted:
		return c.error(status.Incompatible, "it has %d devices instead of %d", n, wanted).
			WithHint("ask for devices=%d, or omit it", n)
	}
	return nil
}

var signalName = regexp.MustCompile(`\bSIG[A-Z]{3,6}\b`)

// how describes the child's end: by its signal if one is known, else by its exit
// status. A Go program turns a signal in C code into exit status 2 and a text.
func (c *child) how() string {
	if name := signalName.FindString(c.stderr.String()); name != "" {
		return name
	}
	return c.exit
}

// tail is a writer that keeps the last 64 KiB.
type tail struct{ kept []byte }

func (t *tail) Write(p []byte) (int, error) {
	const most = 64 << 10
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - most; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return string(bytes.ToValidUTF8(t.kept, []byte("?"))) }

// crashReport matches the beginning of the Go runtime's report of a crash.
var crashReport = regexp.MustCompile(`(?m)^(SIG[A-Z]+: |fatal error: |panic: |runtime: |unexpected fault address )`)

// lastLine returns the last line before a crash report, or the last line of all.
func (t *tail) lastLine() string {
	text := t.String()
	if at := crashReport.FindStringIndex(text); at != nil {
		text = text[:at[0]]
	}
	last := ""
	for line := range strings.Lines(text) {
		last = cmp.Or(wording.FirstLine(printable(strings.TrimSpace(line))), last)
	}
	return last
}

// printable removes control characters from a foreign text.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}
