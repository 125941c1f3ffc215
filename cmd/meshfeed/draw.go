package main

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/plan/collective"
	"github.com/meshfeed/meshfeed/core/plan/diagram"
	diagramdocument "github.com/meshfeed/meshfeed/core/plan/diagram/document"
	"github.com/meshfeed/meshfeed/core/plan/pipeline"
	"github.com/meshfeed/meshfeed/core/plan/strategy"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// newDraw builds the verb draw, with a verb below it for each kind of diagram.
func newDraw() *cobra.Command {
	var o drawOptions
	cmd := &cobra.Command{
		Use:   "draw DIAGRAM.json",
		Short: "draw a matmul, a pipeline, a collective and other diagrams",
		Long: `Draws a diagram of how work and data are split over devices, as text or as SVG. Each kind of diagram
is a verb with flags. Without flags it draws an example. DIAGRAM.json is a document with any diagram;
it may be - for standard input.`,
		Example: `  meshfeed draw matmul
  meshfeed draw pipeline interleaved --stages 4 --micro-batches 8 --chunks 2
  meshfeed draw collective all-reduce --devices 4 --svg all-reduce.svg
  meshfeed draw collective all-reduce --bytes 1000000000 --device h100-80
  meshfeed draw loading layout.json`,
		Args: need(1, 1, "one diagram document, or a kind of diagram"),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := readText(cmd, args[0], diagramKind)
			if status.CodeOf(err) == status.NotFound && !strings.ContainsAny(args[0], "./") {
				return unknownDiagram(cmd, args[0])
			}
			if err != nil {
				return err
			}
			d, err := diagramdocument.Draw(text)
			if err != nil {
				return named(args[0], err)
			}
			return o.write(cmd, d)
		},
		ValidArgsFunction: layoutFiles,
	}
	f := cmd.PersistentFlags()
	f.StringVar(&o.svg, "svg", "", "write an SVG to this file; - writes it to standard output")
	f.IntVar(&o.width, "width", 0, "columns of the text, or pixels of the SVG; default: the terminal's columns or 80, and 760 pixels")
	f.BoolVar(&o.json, "json", false, "print the text and the SVG as JSON")
	cmd.AddCommand(
		drawMesh(&o), drawMatmul(&o), drawPipeline(&o), drawCollective(&o), drawMemory(&o), drawLoading(&o),
	)
	return cmd
}

func unknownDiagram(cmd *cobra.Command, name string) error {
	var kinds []string
	for _, verb := range cmd.Commands() {
		kinds = append(kinds, verb.Name())
	}
	return status.Errorf(status.NotFound, cmd.Name(), "there is no diagram and no file %s", wording.Quote(name)).
		WithHint("%s", suggested(name, kinds, "meshfeed draw --help"))
}

// drawOptions says how a diagram is written.
type drawOptions struct {
	svg   string
	width int
	json  bool
}

// write writes a diagram.
func (o drawOptions) write(cmd *cobra.Command, d *diagram.Diagram) error {
	if o.width < 0 {
		return usage(cmd, "--width is "+strconv.Itoa(o.width)+", but must be at least 0")
	}
	if err := exclusive(cmd, "json", "svg"); err != nil {
		return err
	}
	if o.json {
		return writeJSON(cmd.OutOrStdout(), map[string]string{"text": d.Text(0), "svg": d.SVG(o.width)})
	}
	var err error
	switch o.svg {
	case "":
		width := o.width
		if columns, _, failed := term.GetSize(int(os.Stdout.Fd())); width == 0 && failed == nil {
			width = columns
		}
		_, err = cmd.OutOrStdout().Write([]byte(d.Text(width)))
	case "-":
		_, err = cmd.OutOrStdout().Write([]byte(d.SVG(o.width)))
	default:
		if err = os.WriteFile(o.svg, []byte(d.SVG(o.width)), 0o644); err != nil {
			return status.Errorf(status.IO, cmd.Name(), "%s cannot be written: %v", visible(o.svg), err).
				WithHint("give --svg the path of a file in a folder that exists")
		}
	}
	return err
}

// draw draws the diagram of a spec. The error of a wrong number names its flag.
func (o *drawOptions) draw(cmd *cobra.Command, spec diagram.Spec) error {
	d, err := spec.Draw()
	if e, ok := errors.AsType[*status.Error](err); ok {
		path, _ := e.Attr("path").(string)
		return flagged(cmd, flagOf(cmd, path), e)
	}
	if err != nil {
		return err
	}
	return o.write(cmd, d)
}

// flagged names a flag in place of the JSON Pointer in the message of an error. Without a
// flag, the message has neither.
func flagged(cmd *cobra.Command, flag string, e *status.Error) error {
	path, _ := e.Attr("path").(string)
	message := strings.TrimPrefix(e.Msg, path+": ")
	if flag != "" {
		message = "--" + flag + ": " + message
	}
	return status.New(e.Code, cmd.Name(), message).WithHint("%s", e.Hint)
}

// flagOf returns the flag that sets the value at a JSON Pointer, or "".
func flagOf(cmd *cobra.Command, path string) string {
	parts := strings.Split(strings.ReplaceAll(strings.TrimPrefix(path, "/"), "_", "-"), "/")
	for n := len(parts); n > 0; n-- {
		if name := strings.Join(parts[:n], "-"); cmd.Flags().Lookup(name) != nil {
			return name
		}
	}
	return ""
}

func drawMesh(o *drawOptions) *cobra.Command {
	return &cobra.Command{
		Use:     "mesh [AXIS=SIZE,…]",
		Short:   "the groups of devices along each axis of a mesh",
		Example: "  meshfeed draw mesh data=4,model=2",
		Args:    need(0, 1, "at most one mesh"),
		RunE: func(cmd *cobra.Command, args []string) error {
			axes, err := parseAxes(cmd, append(args, "data=4,model=2")[0])
			if err != nil {
				return err
			}
			return o.draw(cmd, diagram.Mesh{Axes: axes})
		},
	}
}

// parseAxes reads a mesh such as data=4,model=2.
func parseAxes(cmd *cobra.Command, text string) ([]mesh.Axis, error) {
	var axes []mesh.Axis
	for _, part := range entries(text, ",") {
		name, size, _ := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		n, err := strconv.Atoi(strings.TrimSpace(size))
		if err != nil || name == "" {
			return nil, usage(cmd, "expected a mesh such as data=4,model=2, but found "+strconv.Quote(text))
		}
		axes = append(axes, mesh.Axis{Name: name, Size: n})
	}
	return axes, nil
}

// parseSpec reads a partition spec such as data,- or fsdp+data,model: an entry for
// each dimension, - for none, + between axes.
func parseSpec(text string) sharding.PartitionSpec {
	spec := sharding.PartitionSpec{}
	for _, entry := range entries(text, ",") {
		if entry == "" || entry == "-" {
			spec = append(spec, nil)
		} else {
			spec = append(spec, entries(entry, "+"))
		}
	}
	return spec
}

func drawMatmul(o *drawOptions) *cobra.Command {
	var d diagram.Matmul
	var axes, x, w, element string
	cmd := &cobra.Command{
		Use:     "matmul",
		Short:   "the product of two partitioned matrices, and what has to move",
		Example: "  meshfeed draw matmul --mesh fsdp=4,tensor=2 --x 128,4096 --x-spec fsdp,- --w 4096,2048 --w-spec fsdp,tensor",
		Args:    need(0, 0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if d.Axes, err = parseAxes(cmd, axes); err != nil {
				return err
			}
			if d.Type, err = dtype.Parse(element); err != nil {
				return byCommand(cmd, err)
			}
			d.X.Spec, d.W.Spec = parseSpec(x), parseSpec(w)
			return o.draw(cmd, d)
		},
	}
	f := cmd.Flags()
	f.StringVar(&axes, "mesh", "data=4,model=2", "the mesh")
	f.IntSliceVar(&d.X.Shape, "x", []int{128, 4096}, "rows and columns of x")
	f.IntSliceVar(&d.W.Shape, "w", []int{4096, 2048}, "rows and columns of w")
	f.StringVar(&x, "x-spec", "data,-", "the axes that split the rows and columns of x: - for none, + between several")
	f.StringVar(&w, "w-spec", "-,model", "the axes that split the rows and columns of w")
	f.StringVar(&element, "dtype", "bfloat16", "the element type of the product")
	return cmd
}

func drawPipeline(o *drawOptions) *cobra.Command {
	var d diagram.Pipeline
	cmd := &cobra.Command{
		Use:   "pipeline [SCHEDULE]",
		Short: "the tasks of a pipeline over time, with the bubble",
		Long: `Draws which task each stage of a pipeline has at which time.
The schedules are gpipe, 1f1b (the default), interleaved and zero-bubble.`,
		Args: need(0, 1, "at most one schedule"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if d.Kind, err = pipeline.Find(append(args, string(pipeline.OneFOneB))[0]); err != nil {
				return byCommand(cmd, err)
			}
			return o.draw(cmd, d)
		},
		ValidArgsFunction: completions(pipeline.Kinds()),
	}
	f := cmd.Flags()
	f.IntVar(&d.Stages, "stages", 4, "stages")
	f.IntVar(&d.MicroBatches, "micro-batches", 8, "micro-batches")
	f.IntVar(&d.Chunks, "chunks", 1, "chunks of layers per stage, with interleaved")
	return cmd
}

func drawCollective(o *drawOptions) *cobra.Command {
	var d diagram.Collective
	var algorithm, device string
	cmd := &cobra.Command{
		Use:   "collective [OPERATION]",
		Short: "a collective step by step, with its values",
		Long: `Draws the values of all devices before a collective and after each of its steps.
The operations are all-gather, reduce-scatter, all-reduce (the default), all-to-all, permute and broadcast.`,
		Args: need(0, 1, "at most one operation"),
		RunE: func(cmd *cobra.Command, args []string) error {
			d.Op = collective.Op(append(args, string(collective.AllReduce))[0])
			d.Algorithm, d.Device = collective.Algorithm(algorithm), wholeDevice(device)
			return o.draw(cmd, d)
		},
		ValidArgsFunction: completions(collective.Ops()),
	}
	cmd.Flags().IntVar(&d.Devices, "devices", 4, "devices of the group, at most 8")
	cmd.Flags().StringVar(&algorithm, "algorithm", "", "ring, bidirectional, tree or direct; default: the usual one of the operation")
	cmd.Flags().Var((*sizeFlag)(&d.Bytes), "bytes", "bytes of the whole array, such as 1e9 or 512MiB, for what each link carries")
	cmd.Flags().StringVar(&device, "device", "", "kind of device, such as h100-80, for the time; it needs --bytes")
	return cmd
}

// completions tells shell completion the names that an argument may have.
func completions[T ~string](names []T) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) (list []string, _ cobra.ShellCompDirective) {
		for _, name := range names {
			list = append(list, string(name))
		}
		return list, cobra.ShellCompDirectiveNoFileComp
	}
}

func drawMemory(o *drawOptions) *cobra.Command {
	var a adviseFlags
	var stages bool
	cmd := &cobra.Command{
		Use:   "memory MODEL|DOC.json",
		Short: "what fills the memory of a device, for each plan of advise",
		Long: `Draws the memory of a device for each candidate of "meshfeed advise", or with --stages for each pipeline
stage of the best one. MODEL and DOC.json are as in advise.`,
		Example: "  meshfeed draw memory llama3-8b --devices 8 --device h100-80",
		Args:    a.arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := a.question(cmd, args[0])
			if err != nil {
				return byCommand(cmd, err)
			}
			r, err := strategy.Advise(d)
			if err != nil {
				return a.named(cmd, args[0], err)
			}
			if !stages {
				return o.draw(cmd, diagram.CandidateMemory(r))
			}
			if r.Best < 0 {
				return status.New(status.InvalidArgument, cmd.Name(), "no candidate fits, so there is no best one").WithHint("leave out --stages")
			}
			return o.draw(cmd, diagram.StageMemory(r))
		},
	}
	f := cmd.Flags()
	f.IntVar(&a.devices, "devices", 0, "number of devices")
	f.StringVar(&a.device, "device", "", "kind of device, such as h100-80")
	f.IntVar(&a.perNode, "per-node", 0, "devices of a node; default: as usual for the kind")
	f.Int64Var(&a.batch, "batch", 0, "examples of the global batch")
	f.IntVar(&a.sequence, "sequence", 0, "tokens of an example; default: as published")
	f.IntVar(&a.keep, "keep", 8, "the most candidates to draw")
	f.BoolVar(&stages, "stages", false, "draw the pipeline stages of the best candidate")
	return cmd
}

func drawLoading(o *drawOptions) *cobra.Command {
	return &cobra.Command{
		Use:   "loading LAYOUT.json",
		Short: "what each process reads, throws away and receives in the four ways of loading",
		Args:  need(1, 1, "one layout document"),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := readText(cmd, args[0], layoutKind)
			if err != nil {
				return err
			}
			l, err := document.Parse(text)
			if err != nil {
				return named(args[0], err)
			}
			return o.draw(cmd, diagram.Loading{Layout: l})
		},
		ValidArgsFunction: layoutFiles,
	}
}
