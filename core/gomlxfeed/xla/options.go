//go:build cgo && (linux || darwin)

package xla

import (
	"slices"
	"strconv"
	"strings"

	"github.com/gomlx/go-xla/pjrt"

	"github.com/meshfeed/meshfeed/core/gomlxfeed"
	"github.com/meshfeed/meshfeed/core/status"
)

// kind is the platform of a plugin. This package distinguishes only these.
type kind string

const (
	cpu     kind = "cpu"
	cuda    kind = "cuda"
	tpu     kind = "tpu"
	other   kind = "other"
	unknown kind = "unknown" // before a client exists
)

// kindOf converts the platform name that a PJRT client reports.
func kindOf(platform string) kind {
	switch platform {
	case "cpu", "tpu", "cuda":
		return kind(platform)
	case "gpu":
		return cuda
	}
	return other
}

// options are the options after the plugin's path, converted to the types that XLA
// requires. A plugin aborts the process if a value has another type.
type options struct {
	devices  int // 0 if not given
	shared   bool
	visible  []int64
	fraction float32
	given    []string // names of the options, sorted, without devices
}

const optionNames = "the options are devices, shared, visible_devices and memory_fraction"

func parseOptions(spec gomlxfeed.Spec) (options, error) {
	o := options{devices: spec.Devices, shared: true, given: spec.OptionNames()}
	for _, name := range o.given {
		if err := o.set(name, spec.Options[name]); err != nil {
			return options{}, err
		}
	}
	return o, nil
}

func (o *options) set(name, text string) (err error) {
	switch name {
	case "shared":
		if o.shared, err = strconv.ParseBool(text); err != nil {
			return fail(status.InvalidArgument, "option shared must be true or false, but is %q", text)
		}
	case "visible_devices":
		if o.visible, err = parseList(text); err != nil {
			return fail(status.InvalidArgument, "option visible_devices must be numbers with commas between them, each once, but is %q", text)
		}
	case "memory_fraction":
		f, err := strconv.ParseFloat(text, 32)
		if err != nil || !(f > 0 && f <= 1) {
			return fail(status.InvalidArgument, "option memory_fraction must be above 0 and at most 1, but is %q", text)
		}
		o.fraction = float32(f)
	default:
		return fail(status.InvalidArgument, "there is no option %q", name).WithHint(optionNames)
	}
	return nil
}

func parseList(text string) ([]int64, error) {
	var list []int64
	for item := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseUint(item, 10, 31)
		if err != nil || slices.Contains(list, int64(n)) {
			return nil, strconv.ErrSyntax
		}
		list = append(list, int64(n))
	}
	return list, nil
}

// check rejects options that the platform does not have.
func (o options) check(k kind, platform string) error {
	for _, name := range o.given {
		if need := map[string]kind{"shared": cpu, "visible_devices": cuda, "memory_fraction": cuda}[name]; need != k {
			return fail(status.InvalidArgument, "option %s is for plugins of platform %q, and this one's is %q", name, need, platform)
		}
	}
	return nil
}

// client returns the options for PJRT_Client_Create on a platform.
func (o options) client(k kind) pjrt.NamedValuesMap {
	values := pjrt.NamedValuesMap{}
	switch k {
	case cpu:
		if o.devices > 0 {
			values["cpu_device_count"] = int64(o.devices)
		}
	case cuda:
		values["preallocate"] = false // by default, XLA allocates most of the memory at once
		if o.visible != nil {
			values["visible_devices"] = o.visible
		}
		if o.fraction > 0 {
			values["memory_fraction"] = o.fraction
		}
	}
	return values
}
