package main

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// redrawInterval is the shortest time between two drawings on a terminal.
const redrawInterval = 100 * time.Millisecond

// showStatus replaces the status line of a terminal. An empty text clears it.
func showStatus(out io.Writer, text string) {
	if isTerminal(out) {
		fmt.Fprintf(out, "\r\x1b[K%s", text)
	}
}

// records are the options of a bar that shows a rate of records.
var records = []progressbar.Option{progressbar.OptionShowIts(), progressbar.OptionSetItsString("records")}

// newProgress draws a progress bar. The caller calls update as often as it likes
// and finish once. Both do nothing unless out is a terminal.
func newProgress(out io.Writer, what string, more ...progressbar.Option) (update func(done, total int64), finish func()) {
	if !isTerminal(out) {
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
		if time.Since(drawn) < redrawInterval {
			return
		}
		drawn = time.Now()
		if bar.GetMax64() != total {
			bar.ChangeMax64(total)
		}
		_ = bar.Set64(done) // an error of the terminal must not stop the work
	}
	return update, func() { _ = bar.Finish() }
}
