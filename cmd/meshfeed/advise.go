package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/meshfeed/meshfeed/core/plan/hardware"
	"github.com/meshfeed/meshfeed/core/plan/strategy"
	"github.com/meshfeed/meshfeed/core/plan/strategy/document"
	"github.com/meshfeed/meshfeed/core/plan/transformer"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/wording"
)

func newAdvise() *cobra.Command {
	var a adviseFlags
	cmd := &cobra.Command{
		Use:   "advise MODEL|DOC.json",
		Short: "plan how to split a model over devices: memory, time, input",
		Long: `Tries every way of splitting a model over a mesh of devices: data, fsdp, tensor, pipeline, expert and
context parallelism, ZeRO stages, recomputation and micro-batches. Prints for each the memory of a device
and the time of a step, says why the slower ones are slower, and what the fastest one that fits needs of
the input. Needs neither devices nor data.

MODEL is a name that "meshfeed advise --list" prints; it takes --devices and --device. DOC.json is a
strategy document, or - for standard input; flags replace its values. "meshfeed schema strategy" prints
its JSON Schema. "meshfeed explain CODE" explains a code of the report that --json prints.

The exit status is 0 if a candidate fits, 1 if none does, and 2 if the question cannot be answered.`,
		Example: "  meshfeed advise llama3-8b --devices 8 --device h100-80\n  meshfeed advise --json question.json | jq .layout > layout.json",
		Args:    a.arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.list {
				return a.listKnown(cmd)
			}
			return a.run(cmd, args[0])
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) (names []string, _ cobra.ShellCompDirective) {
			for _, m := range transformer.Presets() {
				names = append(names, m.Name+"\t"+m.Title)
			}
			return names, cobra.ShellCompDirectiveDefault
		},
	}
	f := cmd.Flags()
	f.IntVar(&a.devices, "devices", 0, "number of devices: GPUs, or chips of TPUs; a slice v5p-128 has 64 chips")
	f.StringVar(&a.device, "device", "", "kind of device, such as h100-80; with --list: prints its numbers and their sources")
	f.IntVar(&a.perNode, "per-node", 0, "devices of a node; default: as usual for the kind")
	f.Int64Var(&a.batch, "batch", 0, "examples of the global batch; default for a MODEL: up to 2^20 tokens, equally many on each device")
	f.IntVar(&a.sequence, "sequence", 0, "tokens of an example; default: as published")
	f.IntVar(&a.keep, "keep", 0, "the most candidates to list; default: 20")
	f.BoolVar(&a.json, "json", false, "print the report as JSON")
	f.BoolVar(&a.list, "list", false, "list the models and the kinds of devices that are known by name")
	_ = cmd.RegisterFlagCompletionFunc("device", func(*cobra.Command, []string, string) (names []string, _ cobra.ShellCompDirective) { // fails only for a flag that does not exist
		for _, k := range hardware.All() {
			names = append(names, k.Name+"\t"+k.Title)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

// adviseFlags are the flags of the command advise. Zeros stand for the document's
// values, or for the defaults of a model.
type adviseFlags struct {
	devices, perNode, sequence, keep int
	batch                            int64
	device                           string
	json, list                       bool
}

func (a *adviseFlags) arguments(cmd *cobra.Command, args []string) error {
	switch {
	case a.list && a.json:
		return usage(cmd, "--list prints text: leave out --json")
	case a.list:
		return need(0, 0, "no argument with --list")(cmd, args)
	}
	for _, f := range []struct {
		name  string
		value int64
	}{{"devices", int64(a.devices)}, {"per-node", int64(a.perNode)}, {"batch", a.batch}, {"sequence", int64(a.sequence)}, {"keep", int64(a.keep)}} {
		if cmd.Flags().Changed(f.name) && f.value < 1 {
			return usage(cmd, fmt.Sprintf("--%s is %d, but must be at least 1", f.name, f.value))
		}
	}
	return need(1, 1, "one model or strategy document")(cmd, args)
}

func (a *adviseFlags) run(cmd *cobra.Command, arg string) error {
	d, err := a.question(cmd, arg)
	if err != nil {
		return err
	}
	r, err := strategy.Advise(d)
	if err != nil {
		return a.named(cmd, arg, err)
	}
	var text []byte
	if a.json {
		text = document.Report(r)
	} else {
		text = []byte(document.Text(d, r))
	}
	_, err = cmd.OutOrStdout().Write(endLine(text))
	if err == nil && r.Best < 0 {
		return errProblem
	}
	return err
}

// flagsOf has the flag that sets the value at a JSON Pointer.
var flagsOf = map[string]string{
	"/cluster/device": "device", "/cluster/devices": "devices", "/cluster/per_node": "per-node",
	"/training/batch": "batch", "/model/transformer/sequence": "sequence", "/search/keep": "keep",
}

// named names the origin of a wrong value in an error: its flag, or the document.
func (a *adviseFlags) named(cmd *cobra.Command, arg string, err error) error {
	if e, ok := errors.AsType[*status.Error](err); ok {
		path, _ := e.Attr("path").(string)
		if flag := flagsOf[path]; flag != "" && cmd.Flags().Changed(flag) {
			return flagged(cmd, flag, e)
		}
	}
	return named(arg, err)
}

// question reads the document, or makes one for a model, and applies the flags.
func (a *adviseFlags) question(cmd *cobra.Command, arg string) (*strategy.Document, error) {
	if arg != "-" {
		if _, err := os.Stat(arg); errors.Is(err, fs.ErrNotExist) {
			return a.model(cmd, arg)
		}
	}
	text, err := readText(cmd, arg, strategyKind)
	if err != nil {
		return nil, err
	}
	d, err := document.Parse(text)
	if err != nil {
		return nil, named(arg, err)
	}
	if a.sequence > 0 && d.Model.Preset == "" && d.Model.Transformer == nil {
		return nil, usage(cmd, "--sequence goes with a transformer only")
	}
	a.apply(d)
	return d, nil
}

// model makes the question about a model that is known by name.
func (a *adviseFlags) model(cmd *cobra.Command, name string) (*strategy.Document, error) {
	m, err := transformer.Preset(name)
	switch {
	case err != nil && strings.ContainsAny(name, "./"):
		return nil, status.Errorf(status.NotFound, "", "%s does not exist", name).
			WithHint("give the path of a strategy document, - for standard input, or the name of a model: meshfeed advise --list")
	case err != nil:
		return nil, unknownModel(name)
	case a.devices == 0 || a.device == "":
		return nil, usage(cmd, "a model needs --devices and --device, such as --devices 8 --device h100-80")
	}
	sequence := m.Shape.Sequence
	if a.sequence > 0 {
		sequence = a.sequence
	}
	d := &strategy.Document{Model: strategy.Model{Preset: name}}
	d.Training.Batch = defaultBatch(sequence, max(1, a.devices))
	a.apply(d)
	return d, nil
}

// defaultBatch returns the global batch of a model without --batch: at most 2^20 tokens,
// but at least one example per device. Every device has the same power of two, so that any
// axis can split the batch.
func defaultBatch(sequence, devices int) int64 {
	each := max(1, 1<<20/sequence/devices)
	return int64(devices) << (bits.Len(uint(each)) - 1)
}

func unknownModel(name string) error {
	var names []string
	for _, m := range transformer.Presets() {
		names = append(names, m.Name)
	}
	return status.Errorf(status.InvalidArgument, "advise", "there is no model and no file %s", wording.Quote(name)).
		WithHint("%s", suggested(name, names, "meshfeed advise --list"))
}

// apply sets the values of a document that flags give.
func (a *adviseFlags) apply(d *strategy.Document) {
	if a.devices > 0 {
		d.Cluster.Devices = a.devices
	}
	if a.device != "" {
		d.Cluster.Device = wholeDevice(a.device)
	}
	if a.perNode > 0 {
		d.Cluster.PerNode = a.perNode
	}
	if a.batch > 0 {
		d.Training.Batch, d.Training.Tokens = a.batch, 0
	}
	if a.sequence > 0 {
		if d.Model.Transformer == nil {
			d.Model.Transformer = new(strategy.Transformer)
		}
		d.Model.Transformer.Sequence = a.sequence
	}
	if a.keep > 0 {
		d.Search.Keep = a.keep
	}
}

// listKnown prints the models and the kinds of devices, or the numbers of one kind.
func (a *adviseFlags) listKnown(cmd *cobra.Command) error {
	if a.device != "" {
		return listDevice(cmd, wholeDevice(a.device))
	}
	models := [][]string{{"model", "name", "parameters", "tokens"}}
	for _, m := range transformer.Presets() {
		models = append(models, []string{m.Name, m.Title, grouped(m.Shape.Parameters()), grouped(int64(m.Shape.Sequence))})
	}
	devices := [][]string{{"device", "name", "GB", "per node", "bf16 TFLOP/s"}}
	for _, k := range hardware.All() {
		devices = append(devices, []string{k.Name, k.Title, tenths(k.Memory, 1e9), fmt.Sprint(k.PerNode), tenths(k.FLOPs[hardware.BF16], 1e12)})
	}
	if err := table(cmd.OutOrStdout(), models); err != nil {
		return err
	}
	fmt.Fprintln(cmd.OutOrStdout())
	return table(cmd.OutOrStdout(), devices)
}

// listDevice prints the numbers of a kind with their sources.
func listDevice(cmd *cobra.Command, name string) error {
	k, err := hardware.Find(name)
	if e, ok := errors.AsType[*status.Error](err); ok {
		return flagged(cmd, "device", e)
	}
	rows := [][]string{{"number", "value", "source", "date"}}
	for _, c := range k.Cells() {
		if c.Known() {
			rows = append(rows, []string{c.Name, grouped(c.Value) + " " + c.Unit, c.Source, c.Date})
		} else {
			rows = append(rows, []string{c.Name, "?", "", ""})
		}
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s\n\n", k.Title)
	return table(cmd.OutOrStdout(), rows)
}

// tenths formats a number of the table of hardware in a unit, or "?".
func tenths(c hardware.Cell, unit int64) string {
	if !c.Known() {
		return "?"
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(c.Value)/float64(unit)), ".0")
}

// wholeDevice returns the only kind of device with this prefix, in either case, or else the
// name unchanged.
func wholeDevice(name string) string {
	kinds := slices.DeleteFunc(hardware.Names(), func(kind string) bool { return !strings.HasPrefix(kind, strings.ToLower(name)) })
	if _, err := hardware.Find(name); err == nil || len(kinds) != 1 {
		return name
	}
	return kinds[0]
}
