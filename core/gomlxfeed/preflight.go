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
)

const (
	defaultTimeout = 20 * time.Second
	mostAnswer     = 16 << 20 // bytes: a description for each of a million devices
	lingering      = time.Second
)

// preflight tries a plugin in a child process.
func preflight(ctx context.Context, s Spec, o OpenOptions) (Facts, error) {
	prober, err := findProber(s, o.Prober)
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

// findProber gives the program to start.
func findProber(s Spec, asked string) (string, error) {
	if asked == "" && canProbe.Load() {
		return os.Executable()
	}
	name := cmp.Or(asked, "meshfeed")
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	if asked != "" {
		return "", status.Errorf(status.NotFound, "gomlxfeed", "%q was not opened: the prober %q is no program that can be started", s, name)
	}
	return "", status.Errorf(status.Unsupported, "gomlxfeed", "%q was not opened: there is no program that can try it first", s).
		WithHint("call gomlxfeed.RunProbe first in main, or put a `meshfeed` built with -tags xla on PATH, or set OpenOptions.Prober; OpenOptions.NoPreflight loads the plugin at the risk of this process")
}

// child is one preflight: the process, and what came back.
type child struct {
	spec   Spec
	prober string
	limit  time.Duration

	greeted bool
	stage   string // the last step that was begun
	last    line   // the answer, if one came
	garbage string // the first line that is none of ours
	ended   string // how the process ended, as in "exit status 2"
	stderr  tail
}

// run starts the prober and waits for its end. It gives an error unless there
// is an answer.
func (c *child) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	answers, end, err := os.Pipe()
	if err != nil {
		return status.Errorf(status.IO, "gomlxfeed", "the preflight of %q did not start: %w", c.spec, err)
	}
	defer answers.Close()
	cmd := c.command(ctx, end)
	err = cmd.Start()
	end.Close()
	if err != nil {
		return status.Errorf(status.IO, "gomlxfeed", "the preflight of %q did not start: %w", c.spec, err)
	}
	heard := make(chan struct{})
	guard.Go("gomlxfeed", func() error {
		defer close(heard)
		c.listen(io.LimitReader(answers, mostAnswer))
		return nil
	}, func(error) {})
	err = cmd.Wait()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // a process that the plugin left behind holds standard error
	}
	_ = answers.SetReadDeadline(time.Now().Add(lingering))
	<-heard
	c.ended = cmd.ProcessState.String()
	return c.judge(ctx, err)
}

func (c *child) command(ctx context.Context, answers *os.File) *exec.Cmd {
	q, _ := json.Marshal(question{c.spec.String(), c.limit + lingering}) // strings and numbers always marshal
	cmd := exec.CommandContext(ctx, c.prober)
	cmd.Env = append(os.Environ(), probeVariable+"="+string(q), "GOTRACEBACK=none")
	cmd.ExtraFiles = []*os.File{answers} // becomes answerFile
	cmd.Stderr = &c.stderr
	cmd.WaitDelay = lingering
	return cmd
}

// listen reads the prober's lines.
func (c *child) listen(r io.Reader) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, mostAnswer)
	for lines.Scan() {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			c.garbage = cmp.Or(c.garbage, firstLine(printable(lines.Text())), "an empty line")
			continue
		}
		switch {
		case l.Probe == probeVersion:
			c.greeted = true
		case l.Stage != "":
			c.stage = firstLine(printable(l.Stage))
		default:
			c.last = l
		}
	}
}

// judge says what went wrong, if there is no answer to go by.
func (c *child) judge(ctx context.Context, waited error) error {
	switch cause := ctx.Err(); {
	case errors.Is(cause, context.Canceled):
		return cancelled(c.spec, cause)
	case cause != nil:
		return c.error(status.Timeout, "its preflight did not end within %v%s", c.limit, c.doing()).
			WithHint("allow more time (OpenOptions.Timeout; --timeout of the command) if the device is slow to start or held by another program")
	case c.garbage != "":
		return c.error(status.Incompatible, "the prober %q answered something else than a preflight does: %q", c.prober, c.garbage).
			WithHint("the prober and this program must be of the same release")
	case !c.greeted:
		return c.error(status.Incompatible, "the prober %q ended without an answer (%s)", c.prober, c.ended).
			WithHint("its main must call gomlxfeed.RunProbe first")
	case waited != nil || c.last.Facts == nil && c.last.Error == nil:
		return c.error(status.Incompatible, "the plugin ended its preflight%s (%s)", c.doing(), c.how()).
			WithHint("the file is damaged, or the plugin does not fit this release or the options; nothing of it was loaded here")
	}
	return nil
}

func (c *child) doing() string {
	if c.stage == "" {
		return ""
	}
	return " while " + c.stage
}

// error begins with the specification, and ends with what the child said last.
func (c *child) error(code status.Code, format string, args ...any) *status.Error {
	e := status.Errorf(code, "gomlxfeed", "%q was not opened: "+format, append([]any{c.spec}, args...)...)
	if words := c.stderr.lastWords(); words != "" {
		e.Msg += "; it printed last: " + words
	}
	return e.With("stderr", c.stderr.String())
}

// reported is an error that the prober found.
func (c *child) reported(p probedError) error {
	code := p.Code
	if code >= status.OK || code < status.Internal {
		code = status.Internal
	}
	e := status.Errorf(code, "gomlxfeed", "%q was not opened: %s", c.spec, cmp.Or(firstLine(printable(p.Message)), "the preflight gave no reason"))
	e.Hint = firstLine(printable(p.Hint))
	return e.With("stderr", c.stderr.String())
}

// checkFacts refuses an answer that cannot be true.
func (c *child) checkFacts(f Facts) error {
	n, wanted := len(f.Devices), c.spec.Devices
	switch {
	case f.Name == "" || n == 0 && wanted == 0:
		return c.error(status.Incompatible, "it has no devices, or no name")
	case n > mesh.MaxDevices:
		return c.error(status.Incompatible, "it claims %d devices, more than %d", n, mesh.MaxDevices)
	case wanted > 0 && n != wanted:
		return c.error(status.Incompatible, "it has %d devices instead of %d", n, wanted).
			WithHint("ask for devices=%d, or leave it out", n)
	}
	return nil
}

var signalName = regexp.MustCompile(`\bSIG[A-Z]{3,6}\b`)

// how names the signal that ended the child, if one did. A Go program turns
// the signals of its C code into exit status 2 and a text.
func (c *child) how() string {
	if name := signalName.FindString(c.stderr.String()); name != "" {
		return name
	}
	return c.ended
}

// tail keeps the end of what is written to it.
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

// crashReport begins what the Go runtime prints when it ends a process.
var crashReport = regexp.MustCompile(`(?m)^(SIG[A-Z]+: |fatal error: |panic: |runtime: |unexpected fault address )`)

// lastWords gives the last line before a crash report, or of all.
func (t *tail) lastWords() string {
	text := t.String()
	if at := crashReport.FindStringIndex(text); at != nil {
		text = text[:at[0]]
	}
	last := ""
	for words := range strings.Lines(text) {
		last = cmp.Or(firstLine(printable(strings.TrimSpace(words))), last)
	}
	return last
}

// printable takes control characters out of a foreign text.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}
