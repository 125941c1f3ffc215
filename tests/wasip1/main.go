// Command wasip1 runs a program that was compiled for GOOS=wasip1, so that go
// test can run the core's own tests as WebAssembly:
//
//	go build -o /tmp/wasip1 ./tests/wasip1
//	GOOS=wasip1 GOARCH=wasm go test -exec /tmp/wasip1 ./core/layout/...
//
// The program sees the files of this machine, read-only, and a folder for
// temporary ones.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"
)

func main() {
	err := run(context.Background(), os.Args[1:])
	var exit *sys.ExitError
	switch {
	case errors.As(err, &exit):
		os.Exit(int(exit.ExitCode()))
	case err != nil:
		fmt.Fprintln(os.Stderr, "wasip1:", err)
		os.Exit(2)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("usage: wasip1 PROGRAM.wasm ARGUMENTS…")
	}
	program, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	temporary, err := os.MkdirTemp("", "wasip1")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	runtime := wazero.NewRuntime(ctx)
	defer runtime.Close(ctx)
	wasi_snapshot_preview1.MustInstantiate(ctx, runtime)
	files := wazero.NewFSConfig().WithReadOnlyDirMount("/", "/").WithDirMount(temporary, temporary)
	config := wazero.NewModuleConfig().WithArgs(args...).WithFSConfig(files).WithRandSource(rand.Reader).
		WithEnv("PWD", here).WithEnv("TMPDIR", temporary).
		WithStdin(os.Stdin).WithStdout(os.Stdout).WithStderr(os.Stderr).
		WithSysNanotime().WithSysWalltime().WithSysNanosleep()
	_, err = runtime.InstantiateWithConfig(ctx, program, config)
	return err
}
