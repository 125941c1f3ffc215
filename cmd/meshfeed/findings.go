package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/problem"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/wasm/host"
	"github.com/meshfeed/meshfeed/wasm/page"
)

// findings are the problems of a report, parsed and as raw JSON.
type findings struct {
	problems []finding
	raw      struct {
		Problems json.RawMessage `json:"problems"`
	}
}

// finding is one problem of a report, without its facts.
type finding struct {
	Severity            problem.Severity
	Code                problem.Code
	Path, Message, Hint string
}

func findingsOf(report []byte) (*findings, error) {
	var f findings
	err := json.Unmarshal(report, &f.raw)
	if err == nil {
		err = json.Unmarshal(f.raw.Problems, &f.problems)
	}
	if err != nil {
		return nil, status.Errorf(status.Internal, "check", "the report cannot be parsed: %w", err)
	}
	return &f, nil
}

func (f *findings) count(s problem.Severity) (n int) {
	for _, p := range f.problems {
		if p.Severity == s {
			n++
		}
	}
	return n
}

// validator checks documents, natively or by a WebAssembly module. The module is
// opened when the first document is checked.
type validator struct {
	module string // the path of a WebAssembly file, or builtIn; "" to check natively
	host   *host.Validator
}

// find returns the problems of the document that a file contains.
func (v *validator) find(cmd *cobra.Command, file string, text []byte) (*findings, error) {
	if v.module == "" {
		l, err := parseLayout(file, text)
		if err != nil {
			return nil, err
		}
		return findingsOf(document.Report(l, document.ReportOptions{}))
	}
	// Ctrl-C ends the program even without this context, and a call that cannot be
	// canceled is faster.
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
		_ = v.host.Close() // nothing depends on its result
	}
}

// builtIn is the value of --wasm if the user names no file. It selects the module
// of the browser page that this build contains.
const builtIn = "built-in"

// readModule reads a validator from a file, or from this build.
func readModule(cmd *cobra.Command, name string) ([]byte, error) {
	if name == builtIn {
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

// cacheDir returns the directory that caches compiled modules, or "" if no
// directory is writable. Then nothing is cached.
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

// readReply parses the reply of a module about a document.
func readReply(path string, reply []byte) (*findings, error) {
	var r struct {
		Report json.RawMessage
		Error  *struct{ Code, Op, Message, Hint string }
	}
	if err := json.Unmarshal(reply, &r); err != nil {
		return nil, status.Errorf(status.Incompatible, "check", "the module's reply cannot be parsed: %w", err)
	}
	if e := r.Error; e != nil {
		return nil, named(path, &status.Error{Code: codeNamed(e.Code), Op: e.Op, Msg: e.Message, Hint: e.Hint})
	}
	return findingsOf(r.Report)
}

// codeNamed returns the status code with this name, or Internal for an unknown
// name.
func codeNamed(name string) status.Code {
	for _, c := range status.Codes() {
		if c.String() == name {
			return c
		}
	}
	return status.Internal
}
