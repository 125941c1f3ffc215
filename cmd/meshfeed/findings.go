package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/wasm/host"
	"github.com/meshfeed/meshfeed/wasm/page"
)

// findings are the problems of a report, read and as they stand there.
type findings struct {
	problems []problem
	raw      struct {
		Problems json.RawMessage `json:"problems"`
	}
}

// problem is one of them, without its facts.
type problem struct {
	Severity            layout.Severity
	Code                layout.Code
	Path, Message, Hint string
}

func findingsOf(report []byte) (*findings, error) {
	var f findings
	err := json.Unmarshal(report, &f.raw)
	if err == nil {
		err = json.Unmarshal(f.raw.Problems, &f.problems)
	}
	if err != nil {
		return nil, status.Errorf(status.Internal, "check", "the report is not understood: %w", err)
	}
	return &f, nil
}

func (f *findings) count(s layout.Severity) (n int) {
	for _, p := range f.problems {
		if p.Severity == s {
			n++
		}
	}
	return n
}

// validator is what looks at documents: this program, or a module in
// WebAssembly, which is opened for the first document.
type validator struct {
	module string // a file, or carried; "" for this program
	host   *host.Validator
}

// find gives the problems of a document that was read from a file.
func (v *validator) find(cmd *cobra.Command, file string, text []byte) (*findings, error) {
	if v.module == "" {
		l, err := parseLayout(file, text)
		if err != nil {
			return nil, err
		}
		return findingsOf(l.Report(layout.ReportOptions{}))
	}
	// Ctrl-C ends the program in any case, and a call that need not look for it is faster.
	ctx := context.WithoutCancel(cmd.Context())
	if err := v.open(ctx, cmd); err != nil {
		return nil, err
	}
	reply, err := v.host.Describe(ctx, text)
	if err != nil {
		return nil, named(v.module, err)
	}
	return readReply(file, reply)
}

func (v *validator) open(ctx context.Context, cmd *cobra.Command) error {
	if v.host != nil {
		return nil
	}
	code, err := readModule(cmd, v.module)
	if err != nil {
		return err
	}
	v.host, err = host.Open(ctx, code, host.Options{CacheDir: cacheDir()})
	return named(v.module, err)
}

func (v *validator) close() {
	if v.host != nil {
		_ = v.host.Close() // there is nothing to lose
	}
}

// carried is what --wasm stands for without a file: the validator of the page.
const carried = "carried"

// readModule reads a validator from a file, or the one that this build carries.
func readModule(cmd *cobra.Command, name string) ([]byte, error) {
	if name == carried {
		files, err := page.Hosted()
		if err != nil {
			return nil, byCommand(cmd, err)
		}
		return fs.ReadFile(files, "meshfeed.wasm")
	}
	code, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, status.Errorf(status.NotFound, "", "%s does not exist", name).WithHint("make wasm builds a validator as .build/meshfeed.wasm")
	}
	if err != nil {
		return nil, status.Errorf(status.IO, "", "%w", err)
	}
	return code, nil
}

// cacheDir gives where compiled modules are kept, or "" where there is no such
// place, as on a machine whose files cannot be changed.
func cacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	dir = filepath.Join(dir, "meshfeed", "wasm")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return ""
	}
	return dir
}

// readReply reads what a module says about a document.
func readReply(path string, reply []byte) (*findings, error) {
	var r struct {
		Report json.RawMessage
		Error  *struct{ Code, Op, Message, Hint string }
	}
	if err := json.Unmarshal(reply, &r); err != nil {
		return nil, status.Errorf(status.Incompatible, "check", "the module's reply is not understood: %w", err)
	}
	if e := r.Error; e != nil {
		return nil, named(path, &status.Error{Code: codeNamed(e.Code), Op: e.Op, Msg: e.Message, Hint: e.Hint})
	}
	return findingsOf(r.Report)
}

// codeNamed finds a code by its name in a reply.
func codeNamed(name string) status.Code {
	for _, c := range status.Codes() {
		if c.String() == name {
			return c
		}
	}
	return status.Internal
}
