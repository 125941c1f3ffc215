package gomlxfeed

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// The preflight's protocol. The parent starts a child process, the prober, with a
// question in its environment and a pipe as file descriptor 3. The prober writes
// lines of JSON to the pipe: a greeting, one line before each step, and an answer,
// which is facts or an error. The protocol does not use standard output and standard
// error, because plugins write to them.

const (
	probeVariable = "MESHFEED_PROBE"
	probeVersion  = 1
	answerFile    = 3 // file descriptor of the pipe
)

// question is the value of probeVariable.
type question struct {
	Spec  string        `json:"spec"`
	Limit time.Duration `json:"limit"` // nanoseconds until the prober exits even if its parent has died
}

// line is one line that the prober writes. Exactly one member is set.
type line struct {
	Probe int          `json:"meshfeed_probe,omitempty"` // the greeting: the version of the protocol
	Stage string       `json:"stage,omitempty"`          // the step that begins, as in "creating the client"
	Facts *Facts       `json:"facts,omitempty"`          // the answer if the plugin works
	Error *probedError `json:"error,omitempty"`
}

type probedError struct {
	Code    status.Code `json:"code"`
	Message string      `json:"message"`
	Hint    string      `json:"hint,omitempty"`
}

// canProbe is true after a call of RunProbe. Then Open starts this program's own
// executable as the prober.
var canProbe atomic.Bool

// RunProbe lets a program be its own prober. Call it first in main. In a child
// process that Open started, RunProbe tries the plugin, answers and exits. In any
// other process it returns at once.
func RunProbe() {
	canProbe.Store(true)
	text, asked := os.LookupEnv(probeVariable)
	if !asked {
		return
	}
	os.Unsetenv(probeVariable) // else a program that the plugin starts might act as a prober
	if err := probe(text, os.NewFile(answerFile, "answer")); err != nil {
		os.Exit(1) // the parent has closed the pipe
	}
	os.Exit(0)
}

// probe writes the greeting, the steps and the answer to the question in text to out.
func probe(text string, out io.Writer) error {
	enc := json.NewEncoder(out)
	if err := enc.Encode(line{Probe: probeVersion}); err != nil {
		return err
	}
	var q question
	if err := json.Unmarshal([]byte(text), &q); err != nil {
		return enc.Encode(answerError(fail("the question of the preflight is damaged")))
	}
	time.AfterFunc(q.Limit, func() { os.Exit(1) })
	facts, err := try(q.Spec, func(doing string) { _ = enc.Encode(line{Stage: doing}) })
	if err != nil {
		return enc.Encode(answerError(err))
	}
	return enc.Encode(line{Facts: &facts})
}

// try opens the plugin of a specification. It calls stage before each step.
func try(text string, stage func(string)) (facts Facts, err error) {
	spec, err := parseSpec(text)
	if err != nil {
		return Facts{}, err
	}
	opener, err := openerOf(spec)
	if err != nil {
		return Facts{}, err
	}
	err = guard.Call("gomlxfeed", func() (err error) {
		facts, err = opener.Probe(context.Background(), spec, stage)
		return err
	})
	return facts, err
}

func answerError(err error) line {
	e, ok := errors.AsType[*status.Error](err)
	if !ok {
		e = status.New(status.Internal, "", wording.FirstLine(err.Error()))
	}
	return line{Error: &probedError{e.Code, e.Msg, e.Hint}}
}
