package loader_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/status"
)

// TestAnErrorOfAForeignSource sees that an error without a code is no bug of
// meshfeed's, and that the program finds its own error again.
func TestAnErrorOfAForeignSource(t *testing.T) {
	mine := errors.New("the tape is torn")
	src := digits(64)
	src.Hook = func(context.Context, []int64) error { return mine }
	l := newLoader(t, src, loader.Options{Layout: newLayout(t, document(16))})
	_, err := l.Next(t.Context())
	if status.CodeOf(err) != status.IO || !errors.Is(err, mine) || strings.Contains(err.Error(), "bug") {
		t.Errorf("%v: %v", status.CodeOf(err), err)
	}
}

// TestAPanicOfAForeignSource runs a program of another module's name.
func TestAPanicOfAForeignSource(t *testing.T) {
	program := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(program, []byte(foreign), 0o600); err != nil {
		t.Fatal(err)
	}
	said, err := exec.Command("go", "run", program).CombinedOutput()
	const want = "guard: panic: runtime error: index out of range [3] with length 0; main.gather panicked, which meshfeed called and is no part of it; the attribute \"stack\" has the trace\n"
	if err != nil || string(said) != want {
		t.Errorf("%v\n%s", err, said)
	}
}

const foreign = `package main

import (
	"fmt"

	"github.com/meshfeed/meshfeed/core/guard"
)

func gather(list []int) error { return fmt.Errorf("%d", list[3]) }

func main() { fmt.Println(guard.Call("guard", func() error { return gather(nil) })) }
`
