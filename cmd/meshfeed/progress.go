package main

import (
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// newProgress gives a function to call with what is done of the whole, and one
// to call at the end. Both do nothing unless out is a terminal.
func newProgress(out io.Writer, what string) (update func(done, total int64), finish func()) {
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return func(int64, int64) {}, func() {}
	}
	bar := progressbar.NewOptions64(-1,
		progressbar.OptionSetWriter(out),
		progressbar.OptionSetDescription(what),
		progressbar.OptionShowBytes(true),
		progressbar.OptionSetWidth(30),
		progressbar.OptionClearOnFinish(),
	)
	update = func(done, total int64) {
		if bar.GetMax64() != total {
			bar.ChangeMax64(total)
		}
		_ = bar.Set64(done) // an error of the terminal is not worth ending the work for
	}
	return update, func() { _ = bar.Finish() }
}
