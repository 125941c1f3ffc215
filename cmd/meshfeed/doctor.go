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
	"runtime/debug"
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
variables. It also lists the problems that it finds, each with a remedy. It reads no data.

PATH is a file or a folder with data. The current folder is listed, too.

JAX is asked in a child process, because another program may hold a TPU or a GPU. If JAX does not
answer within the time of --timeout, the child is ended, and the report says so.

The exit status is 0 unless something is broken, and then 1. The report contains paths and the values
of environment variables: read it before you publish it.`,
		Example: "  python -m meshfeed doctor data/\n  meshfeed doctor --python ~/env/bin/python --json",
		Args:    need(0, -1, "files or folders"),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print as JSON")
	cmd.Flags().StringVar(&o.python, "python", "", "the Python to list packages of; by default the one that runs meshfeed, or python3")
	cmd.Flags().DurationVar(&o.timeout, "timeout", time.Minute, "the longest time for JAX to list its devices")
	return cmd
}

// run collects the facts and prints them with the problems that they show.
func (o doctorOptions) run(cmd *cobra.Command, paths []string) error {
	if o.timeout <= 0 {
		return usage(cmd, fmt.Sprintf("--timeout is %v, but must be more than 0", o.timeout))
	}
	f := facts{Build: buildFacts(), Host: hostFacts(os.DirFS("/"), os.Environ())}
	for _, path := range paths {
		f.Paths = append(f.Paths, pathFactsOf(os.DirFS("/"), path))
	}
	if !slices.Contains(paths, ".") {
		here := pathFactsOf(os.DirFS("/"), ".")
		here.Files = 0 // these are not data
		f.Paths = append(f.Paths, here)
	}
	showStatus(cmd.ErrOrStderr(), "asking JAX for its devices")
	f.Python, f.JAX = pythonFacts(cmd.Context(), cmp.Or(o.python, "python3"), o.timeout)
	f.Python.named = o.python != ""
	showStatus(cmd.ErrOrStderr(), "")
	if err := cmd.Context().Err(); err != nil {
		return err
	}
	f.Problems = diagnose(&f, o.timeout)
	if o.json {
		if err := writeJSON(cmd.OutOrStdout(), &f); err != nil {
			return err
		}
	} else if err := printFacts(cmd.OutOrStdout(), &f); err != nil {
		return err
	}
	if slices.ContainsFunc(f.Problems, func(p symptom) bool { return p.Severity == problem.Error }) {
		return errProblem
	}
	return nil
}

// facts is the report of the verb doctor, which --json prints.
type facts struct {
	Build    buildInfo  `json:"build"`
	Python   pythonInfo `json:"python"`
	JAX      *jaxInfo   `json:"jax"` // nil if it is not installed
	Host     hostInfo   `json:"host"`
	Paths    []pathInfo `json:"paths"`
	Problems []symptom  `json:"problems"`
}

// buildInfo describes this command.
type buildInfo struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Page     bool   `json:"page"` // the tag page
	XLA      bool   `json:"xla"`  // the tag xla
}

// pythonInfo describes a Python; see meshfeed/selfcheck/environment.py, which prints it.
type pythonInfo struct {
	Executable string            `json:"executable"`
	Version    string            `json:"version,omitempty"`
	Packages   map[string]string `json:"packages,omitempty"` // the versions
	Plugins    []string          `json:"plugins,omitempty"`  // JAX plugins, with versions
	Library    *libraryInfo      `json:"library,omitempty"`
	Error      string            `json:"error,omitempty"`
	named      bool              // by --python, as the package's own command does
}

// libraryInfo describes the C library that the Python package opens.
type libraryInfo struct {
	Path  string `json:"path"`
	ABI   string `json:"abi,omitempty"`
	Error string `json:"error,omitempty"`
}

// jaxInfo describes what JAX sees.
type jaxInfo struct {
	Backend  string       `json:"backend,omitempty"`
	Devices  []deviceInfo `json:"devices,omitempty"`
	Seconds  float64      `json:"seconds"`
	TimedOut bool         `json:"timed_out,omitempty"`
	Error    string       `json:"error,omitempty"`
}

// deviceInfo describes devices of one kind.
type deviceInfo struct {
	Kind        string `json:"kind"`
	Count       int    `json:"count"`
	MemoryBytes int64  `json:"memory_bytes,omitempty"`
}

// symptom is a problem that the facts show.
type symptom struct {
	Severity problem.Severity `json:"severity"`
	Message  string           `json:"message"`
	Remedy   string           `json:"remedy"`
}

func buildFacts() buildInfo {
	_, noPage := page.Hosted()
	return buildInfo{
		Version:  meshfeed.Version(),
		Go:       runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Page:     noPage == nil,
		XLA:      slices.Contains(buildTags(), "xla"),
	}
}

// buildTags returns the tags with which this command was built.
func buildTags() []string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	for _, setting := range info.Settings {
		if setting.Key == "-tags" {
			return strings.Split(setting.Value, ",")
		}
	}
	return nil
}

// pythonFacts asks a Python for its packages, and then JAX for its devices, each in a
// child process. The first child has at least a minute, because a disk may be slow.
func pythonFacts(ctx context.Context, python string, timeout time.Duration) (pythonInfo, *jaxInfo) {
	p := pythonInfo{Executable: python}
	if err := ask(ctx, python, "packages", max(timeout, time.Minute), &p); err != nil {
		p.Error = strings.TrimPrefix(err.Error(), "fork/exec ")
		return p, nil
	}
	if p.Packages["jax"] == "" {
		return p, nil
	}
	var j jaxInfo
	begin := time.Now()
	err := ask(ctx, python, "devices", timeout, &j)
	j.Seconds = time.Since(begin).Seconds()
	if err != nil {
		j.Error = err.Error()
		j.TimedOut = errors.Is(err, context.DeadlineExceeded)
	}
	return p, &j
}

// ask runs the package's module that prints facts as JSON, and parses the last line that it
// prints: Python's start files or a plugin of JAX may print lines before it. The child
// process is killed when the time is over.
func ask(ctx context.Context, python, what string, timeout time.Duration, into any) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, "-m", "meshfeed.selfcheck.environment", what)
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
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// diagnose returns the problems that the facts show, the worst first.
func diagnose(f *facts, timeout time.Duration) []symptom {
	found := []symptom{} // never null in JSON
	found = append(found, slices.Concat(pythonProblems(f), jaxProblems(f, timeout), hostProblems(f), pathProblems(f))...)
	if !f.Build.Page {
		found = append(found, symptom{problem.Info, "this build has no browser page", "install a wheel, or without MESHFEED_PAGE=0; in a checkout run: make page lib"})
	}
	order := []problem.Severity{problem.Error, problem.Warning, problem.Info}
	slices.SortStableFunc(found, func(a, b symptom) int {
		return slices.Index(order, a.Severity) - slices.Index(order, b.Severity)
	})
	return found
}

func pythonProblems(f *facts) (found []symptom) {
	p := f.Python
	severity := problem.Info // the command works without Python
	if p.named {
		severity = problem.Error
	}
	if strings.Contains(p.Error, "No module named") && strings.Contains(p.Error, "meshfeed") {
		return []symptom{{severity, p.Executable + " has no package meshfeed", "name another Python by --python, or install the package there"}}
	}
	if p.Error != "" {
		return []symptom{{severity, "Python could not be asked: " + p.Error, "repair this Python, or name another one by --python"}}
	}
	if v := p.Packages["meshfeed"]; v != f.Build.Version {
		found = append(found, symptom{problem.Warning, fmt.Sprintf("the package has version %s, and this command %s", v, f.Build.Version), "use the command of the package: python -m meshfeed"})
	}
	if p.Library != nil && p.Library.Error != "" {
		message, remedy, _ := strings.Cut(p.Library.Error, "; ")
		found = append(found, symptom{problem.Error, message, cmp.Or(remedy, "reinstall the package, or in a checkout run: make lib")})
	}
	return found
}

// oldestJAX is the oldest release that the package supports.
const oldestJAX = "0.8"

func jaxProblems(f *facts, timeout time.Duration) (found []symptom) {
	if f.Python.Error != "" {
		return nil
	}
	jax, jaxlib := f.Python.Packages["jax"], f.Python.Packages["jaxlib"]
	if jax == "" {
		return []symptom{{problem.Warning, "JAX is not installed, so loaders give NumPy arrays only", `pip install "jax>=0.8", or the build for your accelerator`}}
	}
	if older(jax, oldestJAX) {
		found = append(found, symptom{problem.Error, "JAX " + jax + " is older than " + oldestJAX, `pip install -U "jax>=0.8"`})
	}
	if release(jax) != release(jaxlib) {
		found = append(found, symptom{problem.Warning, fmt.Sprintf("jax %s and jaxlib %s are of different releases", jax, cmp.Or(jaxlib, "(missing)")), "install both of one release: pip install -U jax jaxlib"})
	}
	hidden := !strings.Contains(f.Host.Environment["JAX_PLATFORMS"], "cpu") && !strings.Contains(f.Host.Environment["JAX_PLATFORM_NAME"], "cpu")
	switch j := f.JAX; {
	case j == nil:
	case j.TimedOut:
		found = append(found, symptom{problem.Warning, fmt.Sprintf("JAX did not list its devices within %v; another program may hold the TPU or GPU, or the driver does not answer", timeout), "end that program; or set JAX_PLATFORMS=cpu; or wait longer by --timeout"})
	case j.Error != "":
		found = append(found, symptom{problem.Error, "JAX lists no devices: " + j.Error, "repair the installation of JAX, or choose another backend by JAX_PLATFORMS"})
	case j.Backend == "cpu" && f.Host.Accelerator != "" && hidden:
		found = append(found, symptom{problem.Warning, "this machine has " + f.Host.Accelerator + ", but JAX uses the CPU", "install the build of JAX for it: https://docs.jax.dev/en/latest/installation.html"})
	}
	return found
}

// release returns the first two numbers of a version.
func release(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// older reports whether a version belongs to an older release than another one.
func older(version, than string) bool {
	var a, b, c, d int
	if n, _ := fmt.Sscanf(version, "%d.%d", &a, &b); n != 2 {
		return false
	}
	_, _ = fmt.Sscanf(than, "%d.%d", &c, &d)
	return cmp.Or(cmp.Compare(a, c), cmp.Compare(b, d)) < 0
}

// leastMemory is less than what a small training program takes.
const leastMemory = 1 << 30

func hostProblems(f *facts) (found []symptom) {
	h := f.Host
	const bound = "; max_host_bytes bounds what a loader takes"
	if free := h.Memory.FreeBytes; free > 0 && free < leastMemory {
		found = append(found, symptom{problem.Warning, "only " + sized(free) + " of memory are free", "end other programs" + bound})
	}
	if limit, free := h.Memory.LimitBytes, h.Memory.LimitFreeBytes; limit > 0 && free < leastMemory {
		found = append(found, symptom{problem.Warning, fmt.Sprintf("only %s of the %s that the control group may take are free", sized(free), sized(limit)), "raise the limit of the control group, which Slurm's --mem and the memory limit of a container set" + bound})
	}
	if h.HugePages == "never" {
		found = append(found, symptom{problem.Info, "transparent huge pages are off, so large batches take more time", "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, as root"})
	}
	return found
}

// spareDescriptors are open files that a training program needs besides the data.
const spareDescriptors = 64

func pathProblems(f *facts) (found []symptom) {
	files := 0
	for _, p := range f.Paths {
		files += p.Files
		switch {
		case p.Error != "":
			found = append(found, symptom{problem.Error, p.Error, "name a file or folder that exists and that this user may read"})
		case p.Kind == "network":
			found = append(found, symptom{problem.Info, p.Path + " is on " + p.FileSystem + ", where a read waits for a server", "raise prefetch, or copy the files to a local disk"})
		}
	}
	limit := f.Host.Limits.OpenFiles
	if limit > 0 && int64(files+spareDescriptors) > limit {
		found = append(found, symptom{problem.Warning, fmt.Sprintf("a process may open %s, but a dataset keeps %s open, and a program needs %d more", counted(limit, "file"), counted(int64(files), "file"), spareDescriptors), fmt.Sprintf("ulimit -Hn %d, or write fewer, larger files", files+spareDescriptors)})
	}
	return found
}

// printFacts prints the facts as a table, and the problems below it.
func printFacts(out io.Writer, f *facts) error {
	var rows [][]string
	row := func(name, text string) {
		if text != "" {
			rows = append(rows, []string{name, text})
		}
	}
	row("meshfeed", fmt.Sprintf("%s, %s, %s, %s page, %s xla", f.Build.Version, f.Build.Go, f.Build.Platform, with(f.Build.Page), with(f.Build.XLA)))
	row("python", strings.TrimSpace(f.Python.Version+" "+f.Python.Executable))
	row("packages", strings.Join(versions(f.Python.Packages), ", "))
	row("plugins", strings.Join(f.Python.Plugins, ", "))
	if l := f.Python.Library; l != nil {
		row("C library", strings.TrimSuffix(l.Path+", ABI "+l.ABI, ", ABI "))
	}
	if j := f.JAX; j != nil && j.Backend != "" {
		row("JAX", j.Backend+": "+strings.Join(deviceTexts(j.Devices), ", "))
	}
	f.Host.print(row)
	for _, p := range f.Paths {
		if p.Error == "" {
			files := ""
			if p.Files > 0 {
				files = ", " + counted(p.Files, "file")
			}
			row("path", fmt.Sprintf("%s: %s (%s)%s", p.Path, p.FileSystem, p.Kind, files))
		}
	}
	if err := table(out, rows); err != nil {
		return err
	}
	if len(f.Problems) == 0 {
		_, err := fmt.Fprintln(out, "\nno problem found")
		return err
	}
	fmt.Fprintln(out)
	color := paintFor(out)
	for _, p := range f.Problems {
		fmt.Fprintf(out, "%s: %s\n  %s\n", color.severity(p.Severity), visible(p.Message), visible(p.Remedy))
	}
	return nil
}

func with(part bool) string {
	if part {
		return "with"
	}
	return "without"
}

func versions(packages map[string]string) (texts []string) {
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		texts = append(texts, name+" "+cmp.Or(packages[name], "(missing)"))
	}
	return texts
}

func deviceTexts(devices []deviceInfo) (texts []string) {
	for _, d := range devices {
		text := fmt.Sprintf("%d × %s", d.Count, d.Kind)
		if d.MemoryBytes > 0 {
			text += " with " + sized(d.MemoryBytes)
		}
		texts = append(texts, text)
	}
	return texts
}
