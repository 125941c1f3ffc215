package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// betweenDrawings is the least time from one drawing on a terminal to the next.
const betweenDrawings = 100 * time.Millisecond

// say shows what runs on one line of a terminal, and clears it for "".
func say(out io.Writer, what string) {
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		fmt.Fprintf(file, "\r\x1b[K%s", what)
	}
}

// newProgress gives a function to call with what is done of the whole, as often
// as one likes, and one to call at the end. Both do nothing unless out is a
// terminal.
func newProgress(out io.Writer, what string, more ...progressbar.Option) (update func(done, total int64), finish func()) {
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return func(int64, int64) {}, func() {}
	}
	bar := progressbar.NewOptions64(-1, append(more,
		progressbar.OptionSetWriter(out),
		progressbar.OptionSetDescription(what),
		progressbar.OptionSetWidth(30),
		progressbar.OptionClearOnFinish(),
	)...)
	var drawn time.Time
	update = func(done, total int64) {
		if time.Since(drawn) < betweenDrawings {
			return
		}
		drawn = time.Now()
		if bar.GetMax64() != total {
			bar.ChangeMax64(total)
		}
		_ = bar.Set64(done) // an error of the terminal is not worth ending the work for
	}
	return update, func() { _ = bar.Finish() }
}
