// Command planning measures how long the strategy planner takes: as a Go package, and as a
// WebAssembly module in Node.js, which has the engine of Chromium. It writes the section of
// docs/benchmarks.md on the planner. `make bench-planner` runs it.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/meshfeed/meshfeed/core/plan/strategy"
	"github.com/meshfeed/meshfeed/core/plan/strategy/document"
)

func main() {
	module := flag.String("module", ".build/strategy.wasm", "the planner's WebAssembly module")
	node := flag.String("node", ".build/node/bin/node", "the program Node.js")
	commit := flag.String("commit", "unknown", "the commit that was measured")
	rounds := flag.Int("rounds", 15, "how often each way answers each question")
	out := flag.String("out", "/dev/stdout", "the `file` to write")
	flag.Parse()
	if err := run(*module, *node, *commit, *out, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// question has the numbers of a document, and how many candidates it has.
type question struct {
	model, device    string
	devices, perNode int
	batch            int
	candidates       int64
}

var questions = []question{
	{model: "llama3-8b", device: "h100-80", devices: 8, batch: 128},
	{model: "llama3-70b", device: "h100-80", devices: 65536, batch: 65536},
	{model: "mixtral-8x7b", device: "h100-80", devices: 64, batch: 512},
	{model: "llama3-70b", device: "tpu-v5p", devices: 65536, perNode: 4096, batch: 65536},
	{model: "mixtral-8x7b", device: "h100-80", devices: 65536, batch: 65536},
	{model: "llama3-405b", device: "h100-80", devices: 1 << 20, batch: 1 << 20},
}

func (q *question) document() []byte {
	node := ""
	if q.perNode > 0 {
		node = fmt.Sprintf(`,"per_node":%d`, q.perNode)
	}
	return fmt.Appendf(nil, `{"meshfeed":1,"model":{"preset":%q},"training":{"batch":%d},"cluster":{"device":%q,"devices":%d%s}}`, q.model, q.batch, q.device, q.devices, node)
}

// way is a way to run the planner. ask computes the report of a document.
type way struct {
	name string
	ask  func(text []byte) error
}

func run(module, node, commit, out string, rounds int) error {
	child, err := startNode(node, module)
	if err != nil {
		return err
	}
	defer child.close()
	ways := []way{
		{"Go", native},
		{"Node.js", child.ask},
	}
	for i := range questions {
		q := &questions[i]
		if q.candidates, err = count(q.document()); err != nil {
			return err
		}
	}
	times, err := measure(ways, rounds)
	if err != nil {
		return err
	}
	return os.WriteFile(out, []byte(page(ways, times, commit, child.version, rounds)), 0o644)
}

// native runs the planner as a Go package, with the same results as the module.
func native(text []byte) error {
	d, err := document.Parse(text)
	if err != nil {
		return err
	}
	r, err := strategy.Advise(d)
	if err != nil {
		return err
	}
	document.Report(r)
	document.Text(d, r)
	return nil
}

// count returns the number of candidates that the planner evaluates for a document.
func count(text []byte) (int64, error) {
	d, err := document.Parse(text)
	if err != nil {
		return 0, err
	}
	r, err := strategy.Advise(d)
	if err != nil {
		return 0, err
	}
	return r.Evaluated, nil
}

// measure returns milliseconds by question and way. The ways alternate, so that other load
// of the machine slows all of them alike. The first two rounds do not count, because
// engines compile the module while it runs.
func measure(ways []way, rounds int) ([][][]float64, error) {
	times := make([][][]float64, len(questions))
	for i := range times {
		times[i] = make([][]float64, len(ways))
	}
	for round := range rounds + 2 {
		for i := range questions {
			text := questions[i].document()
			for k := range ways {
				began := time.Now()
				if err := ways[k].ask(text); err != nil {
					return nil, fmt.Errorf("%s: %w", ways[k].name, err)
				}
				if round >= 2 {
					times[i][k] = append(times[i][k], float64(time.Since(began))/1e6)
				}
			}
		}
	}
	return times, nil
}

// node is a process of Node.js that runs node.mjs.
type node struct {
	version string
	process *exec.Cmd
	input   io.WriteCloser
	output  *bufio.Reader
}

func startNode(program, module string) (*node, error) {
	n := &node{process: exec.Command(program, "--no-warnings", "tests/planning/node.mjs", module)}
	n.process.Stderr = os.Stderr
	var err error
	if n.input, err = n.process.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := n.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	n.output = bufio.NewReader(output)
	if err := n.process.Start(); err != nil {
		return nil, err
	}
	n.version, err = n.line()
	return n, err
}

// line reads a line that the process writes.
func (n *node) line() (string, error) {
	text, err := n.output.ReadString('\n')
	return strings.TrimSpace(text), err
}

// ask sends a document. The process answers with the length of the reply.
func (n *node) ask(text []byte) error {
	if _, err := n.input.Write(append(slices.Clip(text), '\n')); err != nil {
		return err
	}
	reply, err := n.line()
	if err != nil {
		return err
	}
	if size, err := strconv.Atoi(reply); err != nil || size < 1000 {
		return errors.New("a reply of " + reply + " bytes is not a report")
	}
	return nil
}

func (n *node) close() {
	_ = n.input.Close()
	_ = n.process.Wait()
}
