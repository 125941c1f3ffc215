package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/meshfeed/meshfeed"
	"github.com/meshfeed/meshfeed/core/problem"
	"github.com/meshfeed/meshfeed/wasm/page"
)

// doctorOptions holds the flags of the verb doctor.
type doctorOptions struct {
	json    bool
	python  string
	timeout time.Duration
}

func newDoctor() *cobra.Command {
	var o doctorOptions
	cmd := &cobra.Command{
		Use:   "doctor [PATH…]",
		Short: "list versions, devices, limits and file systems, and what is wrong with them",
		Long: `Lists what a report of a problem needs: versions and parts of this build, Python's packages, the
devices that JAX sees, the processor, memory, limits of the process, file systems, and environment
variables. It also lists the problems that it finds, each with a remedy. It reads no data on disks.

PATH is a file or a folder with data. The current folder is listed, too. For an address, such as
s3://bucket/train or https://host/train.parquet, it lists the storage and measures one file: the
time to the first byte, and the rate of 1, 4 and 16 reads at once, for 2 s and 8 MiB each.

JAX is asked in a child process, because another program may hold a TPU or a GPU. If JAX does not
answer within the time of --timeout, the child is ended, and the report says so.

The exit status is 0 unless something is broken, and then 1. The report contains paths and the values
of environment variables: read it before you publish it.`,
		Example: "  python -m meshfeed doctor data/\n  meshfeed doctor https://host/train-{000..127}.parquet\n  meshfeed doctor --python ~/env/bin/python --json",
		Args:    need(0, -1, "files or folders"),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print as JSON")
	cmd.Flags().StringVar(&o.python, "python", "", "the Python to list packages of; by default the one that runs meshfeed, or python3")
	cmd.Flags().DurationVar(&o.timeout, "timeout", time.Minute, "the longest time for JAX to list its devices, and for a storage to answer")
	return cmd
}

// run collects the facts and prints them with the problems that they show.
func (o doctorOptions) run(cmd *cobra.Command, paths []string) error {
	if o.timeout <= 0 {
		return usage(cmd, fmt.Sprintf("--timeout is %v, but must be more than 0", o.timeout))
	}
	r := &report{Problems: []symptom{}} // never null in JSON
	m := machine{os.DirFS("/"), relevant(os.Environ())}
	showStatus(cmd.ErrOrStderr(), "asking JAX for its devices")
	p, j := o.ask(cmd.Context())
	showStatus(cmd.ErrOrStderr(), "")
	if err := cmd.Context().Err(); err != nil {
		return err
	}
	_, noPage := page.Hosted()
	r.build(noPage == nil)
	r.python(p, meshfeed.Version(), o.python != "")
	if p.Error == "" {
		r.jax(p, j, m, o.timeout)
	}
	r.fact("processor", processor())
	r.host(m)
	r.paths(m, slices.DeleteFunc(slices.Clone(paths), isAddress))
	for _, address := range slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return !isAddress(p) }) {
		showStatus(cmd.ErrOrStderr(), "measuring a storage")
		r.far(cmd.Context(), address, o.timeout)
		showStatus(cmd.ErrOrStderr(), "")
	}
	if err := cmd.Context().Err(); err != nil {
		return err
	}
	r.sort()
	if o.json {
		if err := writeJSON(cmd.OutOrStdout(), r); err != nil {
			return err
		}
	} else if err := r.print(cmd.OutOrStdout()); err != nil {
		return err
	}
	if slices.ContainsFunc(r.Problems, func(p symptom) bool { return p.Severity == problem.Error }) {
		return errProblem
	}
	return nil
}

// report is what the verb doctor prints: facts, and the problems that they show.
type report struct {
	Facts    []fact    `json:"facts"`
	Problems []symptom `json:"problems"`
}

type fact struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

type symptom struct {
	Severity problem.Severity `json:"severity"`
	Message  string           `json:"message"`
	Remedy   string           `json:"remedy"`
}

// fact adds a fact, unless the text is empty.
func (r *report) fact(name, text string) {
	if text != "" {
		r.Facts = append(r.Facts, fact{name, text})
	}
}

func (r *report) problem(severity problem.Severity, message, remedy string) {
	r.Problems = append(r.Problems, symptom{severity, message, remedy})
}

// sort puts the worst problems first.
func (r *report) sort() {
	order := []problem.Severity{problem.Error, problem.Warning, problem.Info}
	slices.SortStableFunc(r.Problems, func(a, b symptom) int {
		return slices.Index(order, a.Severity) - slices.Index(order, b.Severity)
	})
}

// print prints the facts as a table, and the problems below it.
func (r *report) print(out io.Writer) error {
	var rows [][]string
	for _, f := range r.Facts {
		rows = append(rows, []string{f.Name, f.Text})
	}
	if err := table(out, rows); err != nil {
		return err
	}
	if len(r.Problems) == 0 {
		_, err := fmt.Fprintln(out, "\nno problem found")
		return err
	}
	fmt.Fprintln(out)
	color := paintFor(out)
	for _, p := range r.Problems {
		fmt.Fprintf(out, "%s: %s\n  %s\n", color.severity(p.Severity), visible(p.Message), visible(p.Remedy))
	}
	return nil
}

// withXLA is true in a build with the tag xla.
var withXLA bool

// build describes this command.
func (r *report) build(withPage bool) {
	with := map[bool]string{false: "without", true: "with"}
	r.fact("meshfeed", fmt.Sprintf("%s, %s, %s/%s, %s page, %s xla", meshfeed.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH, with[withPage], with[withXLA]))
	if !withPage {
		r.problem(problem.Info, "this build has no browser page", "install a wheel, or without MESHFEED_PAGE=0; in a checkout run: make page lib")
	}
}

// pythonInfo describes a Python; see meshfeed._selfcheck.environment.py, which prints it.
type pythonInfo struct {
	Executable, Version string
	Packages            map[string]string                       // the versions
	Plugins             []string                                // JAX plugins, with versions
	Library             struct{ Path, ABI, JPEG, Error string } // which the package opens
	Error               string
}

// jaxInfo describes what JAX sees.
type jaxInfo struct {
	Backend string
	Devices []struct {
		Kind        string
		Count       int
		MemoryBytes int64 `json:"memory_bytes"`
	}
	Error    string
	timedOut bool
}

// ask asks a Python for its packages, and then JAX for its devices, each in a child
// process. The first child has at least a minute, because a disk may be slow. JAX does not
// answer if it is not installed.
func (o doctorOptions) ask(ctx context.Context) (pythonInfo, *jaxInfo) {
	p := pythonInfo{Executable: cmp.Or(o.python, "python3")}
	if err := ask(ctx, p.Executable, "packages", max(o.timeout, time.Minute), &p); err != nil {
		p.Error = strings.TrimPrefix(err.Error(), "fork/exec ")
		return p, nil
	}
	if p.Packages["jax"] == "" {
		return p, nil
	}
	var j jaxInfo
	if err := ask(ctx, p.Executable, "devices", o.timeout, &j); err != nil {
		j = jaxInfo{Error: err.Error(), timedOut: errors.Is(err, context.DeadlineExceeded)}
	}
	return p, &j
}

// ask runs the package's module that prints facts as JSON, and parses the last line that it
// prints: Python's start files or a plugin of JAX may print lines before it. The child
// process is killed when the time is over.
func ask(ctx context.Context, python, what string, timeout time.Duration, into any) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, "-m", "meshfeed._selfcheck.environment", what)
	// By default JAX takes most of the memory of a GPU at the start.
	cmd.Env = append(os.Environ(), "XLA_PYTHON_CLIENT_PREALLOCATE=false")
	cmd.WaitDelay = time.Second // for children of the child that keep the pipe open
	var diagnostics strings.Builder
	cmd.Stderr = &diagnostics
	out, err := cmd.Output()
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("no answer within %v (%w)", timeout, ctx.Err())
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		answer := lastLine(string(out))
		if json.Unmarshal([]byte(answer), into) != nil {
			return fmt.Errorf("it printed %q instead of a JSON object", fmt.Sprintf("%.80s", answer))
		}
		return nil
	}
	if last := lastLine(diagnostics.String()); last != "" {
		return fmt.Errorf("%w: %s", err, last)
	}
	return err
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndex(text, "\n")+1:]
}

// python describes a Python, which the option --python named or not, for a command of a
// version.
func (r *report) python(p pythonInfo, version string, named bool) {
	r.fact("python", strings.TrimSpace(p.Version+" "+p.Executable))
	if p.Error != "" {
		severity := problem.Info // the command works without Python
		if named {
			severity = problem.Error
		}
		if strings.Contains(p.Error, "No module named") && strings.Contains(p.Error, "meshfeed") {
			r.problem(severity, p.Executable+" has no package meshfeed", "name another Python by --python, or install the package there")
		} else {
			r.problem(severity, "Python could not be asked: "+p.Error, "repair this Python, or name another one by --python")
		}
		return
	}
	var packages []string
	for _, name := range slices.Sorted(maps.Keys(p.Packages)) {
		packages = append(packages, name+" "+cmp.Or(p.Packages[name], "(missing)"))
	}
	r.fact("packages", strings.Join(packages, ", "))
	r.fact("plugins", strings.Join(p.Plugins, ", "))
	library := p.Library.Path
	if p.Library.Error == "" {
		library += ", ABI " + p.Library.ABI + ", JPEG by " + p.Library.JPEG
	}
	r.fact("C library", library)
	if strings.HasPrefix(p.Library.JPEG, "go") {
		r.problem(problem.Warning, "the C library was built without libjpeg-turbo, so it decodes JPEG slower, and to other bytes than other builds",
			"install a wheel, or build where pip can fetch a package: make lib")
	}
	if v := p.Packages["meshfeed"]; v != version {
		r.problem(problem.Warning, fmt.Sprintf("the package has version %s, and this command %s", v, version), "use the command of the package: python -m meshfeed")
	}
	if p.Library.Error != "" {
		message, remedy, _ := strings.Cut(p.Library.Error, "; ")
		r.problem(problem.Error, message, cmp.Or(remedy, "reinstall the package, or in a checkout run: make lib"))
	}
}

// oldestJAX is the oldest release that the package supports, 0.8.
const oldestJAX = 8

// release returns the first two numbers of a version as one; 0 without two numbers.
func release(version string) int {
	var major, minor int
	if n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor); n < 2 {
		return 0
	}
	return 1000*major + minor
}

// jax describes JAX and what it sees; j is nil if it is not installed.
func (r *report) jax(p pythonInfo, j *jaxInfo, m machine, timeout time.Duration) {
	if j == nil {
		r.problem(problem.Warning, "JAX is not installed, so loaders give NumPy arrays only", `pip install "jax>=0.8", or the build for your accelerator`)
		return
	}
	jax, jaxlib := p.Packages["jax"], p.Packages["jaxlib"]
	if n := release(jax); n > 0 && n < oldestJAX {
		r.problem(problem.Error, "JAX "+jax+" is older than 0.8", `pip install -U "jax>=0.8"`)
	}
	if release(jax) != release(jaxlib) {
		r.problem(problem.Warning, fmt.Sprintf("jax %s and jaxlib %s are of different releases", jax, cmp.Or(jaxlib, "(missing)")), "install both of one release: pip install -U jax jaxlib")
	}
	var devices []string
	for _, d := range j.Devices {
		text := fmt.Sprintf("%d × %s", d.Count, d.Kind)
		if d.MemoryBytes > 0 {
			text += " with " + sized(d.MemoryBytes)
		}
		devices = append(devices, text)
	}
	if j.Backend != "" {
		r.fact("JAX", j.Backend+": "+strings.Join(devices, ", "))
	}
	switch accelerator := m.accelerator(); {
	case j.timedOut:
		r.problem(problem.Warning, fmt.Sprintf("JAX did not list its devices within %v; another program may hold the TPU or GPU, or the driver does not answer", timeout), "end that program; or set JAX_PLATFORMS=cpu; or wait longer by --timeout")
	case j.Error != "":
		r.problem(problem.Error, "JAX lists no devices: "+j.Error, "repair the installation of JAX, or choose another backend by JAX_PLATFORMS")
	case j.Backend == "cpu" && accelerator != "" && !strings.Contains(m.environment["JAX_PLATFORMS"]+m.environment["JAX_PLATFORM_NAME"], "cpu"):
		r.problem(problem.Warning, "this machine has "+accelerator+", but JAX uses the CPU", "install the build of JAX for it: https://docs.jax.dev/en/latest/installation.html")
	}
}
