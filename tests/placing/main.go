// Command placing measures what it costs to bring a batch to the devices of GoMLX:
// the pure-Go backend, and XLA on CPUs. It writes the section on GoMLX of
// docs/benchmarks.md. `make bench-go` runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strconv"

	"github.com/meshfeed/meshfeed/core/gomlxfeed"
	_ "github.com/meshfeed/meshfeed/core/gomlxfeed/xla" // opens plugins
)

func main() {
	gomlxfeed.RunProbe()
	plugin := flag.String("plugin", "", "XLA's plugin for CPUs, a `path`; without it virtual devices alone are measured")
	commit := flag.String("commit", "unknown", "the commit that was measured")
	bare := flag.Bool("trainer", false, "write the time of a trainer's batch on shared XLA alone")
	rounds := flag.Int("rounds", 24, "how often every cell has its turn")
	out := flag.String("out", "", "the `file` to write; standard output if empty")
	flag.Parse()
	if err := run(*plugin, *commit, *rounds, *out, *bare); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(plugin, commit string, rounds int, out string, bare bool) (err error) {
	w, err := newWorkload()
	if err != nil {
		return err
	}
	backends, err := open(plugin)
	defer func() { err = errors.Join(err, closeAll(backends)) }()
	if err != nil {
		return err
	}
	b := &bench{workload: w}
	b.onHost()
	for _, on := range backends {
		b.onDevices(on.name, on.devices)
	}
	defer func() { err = errors.Join(err, b.end()) }()
	if b.err != nil {
		return b.err
	}
	micros, err := measure(b.cells, rounds)
	if err != nil {
		return err
	}
	p := page{backends: backends, cells: b.cells, micros: micros, rounds: rounds, commit: commit}
	if bare {
		return write(out, p.text(sharedXLA, trainerRing)+", and the program by hand "+p.text(sharedXLA, byHand))
	}
	if plugin != "" {
		if p.keeping, err = again(plugin, rounds); err != nil {
			return err
		}
	}
	return write(out, p.markdown())
}

func write(out, text string) error {
	if out == "" {
		_, err := os.Stdout.WriteString(text)
		return err
	}
	return os.WriteFile(out, []byte(text), 0o644)
}

// again measures in a child process with a malloc that keeps freed memory.
func again(plugin string, rounds int) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	child := exec.Command(self, "-trainer", "-plugin", plugin, "-rounds", strconv.Itoa(rounds))
	child.Env = append(os.Environ(), keep...)
	child.Stderr = os.Stderr
	text, err := child.Output()
	return string(text), err
}

// keep makes glibc's malloc keep freed memory, up to 256 MiB.
var keep = []string{"MALLOC_TRIM_THRESHOLD_=268435456", "MALLOC_MMAP_THRESHOLD_=33554432"}

const sharedXLA = "XLA CPU, shared" // its devices use the memory of the host

type backend struct {
	name    string
	devices *gomlxfeed.Devices
}

// open opens eight devices of every kind.
func open(plugin string) (list []backend, err error) {
	specs := [][2]string{{"virtual:8", "virtual:8"}}
	if plugin != "" {
		specs = append(specs, [2]string{sharedXLA, "xla:" + plugin + "?devices=8"}, [2]string{"XLA CPU, not shared", "xla:" + plugin + "?devices=8&shared=false"})
	}
	for _, s := range specs {
		d, err := gomlxfeed.Open(context.Background(), s[1])
		if err != nil {
			return list, err
		}
		list = append(list, backend{s[0], d})
	}
	return list, nil
}

func closeAll(list []backend) (err error) {
	for _, b := range list {
		if buffers, bytes := b.devices.Live(); buffers > 0 {
			err = errors.Join(err, fmt.Errorf("%s: %d buffers of %d bytes are live at the end", b.name, buffers, bytes))
		}
		err = errors.Join(err, b.devices.Close())
	}
	return err
}
