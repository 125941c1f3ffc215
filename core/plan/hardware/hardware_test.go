package hardware_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/plan/hardware"
)

func TestEveryKnownCellHasItsSourceAndDate(t *testing.T) {
	date := regexp.MustCompile(`^(read )?20[0-9][0-9]-(0[1-9]|1[0-2])$`)
	for _, k := range hardware.All() {
		known := 0
		for _, c := range k.Cells() {
			if c.Known() && (c.Source == "" || !date.MatchString(c.Date)) {
				t.Errorf("%s: %s has source %q and date %q", k.Name, c.Name, c.Source, c.Date)
			}
			if !c.Known() && c.Cell != (hardware.Cell{}) {
				t.Errorf("%s: %s is not known, but has %+v", k.Name, c.Name, c.Cell)
			}
			if _, precision := k.FLOPs[hardware.Precision(c.Name)]; precision {
				known++
			}
		}
		if known != len(k.FLOPs) {
			t.Errorf("%s: Cells has %d of %d precisions", k.Name, known, len(k.FLOPs))
		}
	}
}

func TestNamesAreUnique(t *testing.T) {
	seen := map[string]bool{"": true}
	for _, k := range hardware.All() {
		for _, name := range append([]string{k.Name, k.Title}, k.JAX...) {
			if seen[name] {
				t.Errorf("%s has the name %q, which is empty or not unique", k.Name, name)
			}
			seen[name] = true
		}
		if k.Vendor == "" || len(k.JAX) == 0 {
			t.Errorf("%s has vendor %q and the names %q in JAX", k.Name, k.Vendor, k.JAX)
		}
	}
}

func TestFind(t *testing.T) {
	for _, k := range hardware.All() {
		if found, err := hardware.Find(k.Name); err != nil || found.Title != k.Title {
			t.Errorf("Find(%s) = %v, %v", k.Name, found.Title, err)
		}
	}
	for jax, want := range map[string]string{
		"Tesla V100-SXM3-32GB":    "v100-32",
		"NVIDIA A100-SXM4-40GB":   "a100-40",
		"NVIDIA A100-SXM4-80GB":   "a100-80",
		"NVIDIA H100 80GB HBM3":   "h100-80",
		"NVIDIA H100 PCIe":        "h100-pcie",
		"NVIDIA H200":             "h200-141",
		"NVIDIA A100 80GB PCIe":   "a100-pcie",
		"NVIDIA GB200":            "gb200-186",
		"NVIDIA GB300":            "gb300-279",
		"NVIDIA GeForce RTX 4090": "rtx-4090",
		"NVIDIA GeForce RTX 5090": "rtx-5090",
		"AMD Instinct MI300X":     "mi300x-192",
		"NVIDIA B200":             "b200-180",
		"NVIDIA L4":               "l4-24",
		"NVIDIA L40S":             "l40s-48",
		"TPU v4":                  "tpu-v4",
		"TPU v5 lite":             "tpu-v5e",
		"TPU v5e":                 "tpu-v5e",
		"TPU v5":                  "tpu-v5p",
		"TPU v5p":                 "tpu-v5p",
		"TPU v6 lite":             "tpu-v6e",
		"TPU v6e":                 "tpu-v6e",
		"TPU7x":                   "tpu-v7",
	} {
		if found, err := hardware.Find(jax); err != nil || found.Name != want {
			t.Errorf("Find(%s) = %q, %v, want %s", jax, found.Name, err, want)
		}
	}
	for name, want := range map[string]string{
		"NVIDIA H100 NVL":         `hardware: there is no device kind "NVIDIA H100 NVL"; use "h100-80", "h100-pcie", or give the numbers of the device`,
		"NVIDIA A100-PCIE-40GB":   `hardware: there is no device kind "NVIDIA A100-PCIE-40GB"; use "a100-40", "a100-80", "a100-pcie", or give the numbers of the device`,
		"Tesla K80":               `hardware: there is no device kind "Tesla K80"; use "v100-32", "a100-40", "a100-80", "a100-pcie", "h100-80", "h100-pcie", "h200-141", "b200-180", "gb200-186", "gb300-279", "rtx-4090", "rtx-5090", "mi300x-192", "l4-24", "l40s-48", "tpu-v4", "tpu-v5e", "tpu-v5p", "tpu-v6e", "tpu-v7", or give the numbers of the device`,
		"h100":                    `hardware: there is no device kind "h100"; use "h100-80", "h100-pcie", or give the numbers of the device`,
		"H100-SXM":                `hardware: there is no device kind "H100-SXM"; use "h100-80", "h100-pcie", or give the numbers of the device`,
		"A100_40":                 `hardware: there is no device kind "A100_40"; use "a100-40", "a100-80", "a100-pcie", or give the numbers of the device`,
		"l40":                     `hardware: there is no device kind "l40"; use "l4-24", "l40s-48", or give the numbers of the device`,
		"h10":                     `hardware: there is no device kind "h10"; use "h100-80", "h100-pcie", or give the numbers of the device`,
		"b2OO-180":                `hardware: there is no device kind "b2OO-180"; use "b200-180", or give the numbers of the device`,
		"v5p":                     `hardware: there is no device kind "v5p"; use "tpu-v5p", or give the numbers of the device`,
		"mi300x":                  `hardware: there is no device kind "mi300x"; use "mi300x-192", or give the numbers of the device`,
		"NVIDIA GeForce RTX 3090": `hardware: there is no device kind "NVIDIA GeForce RTX 3090"; use "rtx-4090", "rtx-5090", or give the numbers of the device`,
	} {
		if _, err := hardware.Find(name); err == nil || err.Error() != want {
			t.Errorf("Find(%s):\ngot  %v\nwant %s", name, err, want)
		}
	}
}

// Numbers with sparsity, of both directions or in the wrong unit would break
// these relations.
func TestNumbersArePlausible(t *testing.T) {
	for _, k := range hardware.All() {
		between := func(name string, value, least, most float64) {
			t.Helper()
			if value != 0 && (value < least || value > most) {
				t.Errorf("%s: %s is %g, want %g to %g", k.Name, name, value, least, most)
			}
		}
		flops := func(p hardware.Precision) float64 { return float64(k.FLOPs[p].Value) }
		half := max(flops(hardware.BF16), flops(hardware.FP16)) // the only number that every kind has
		between("memory", float64(k.Memory.Value), 16e9, 300e9)
		between("memory / HBM in seconds", float64(k.Memory.Value)/float64(k.HBM.Value), 0.01, 0.1)
		between("operations per byte of HBM", half/float64(k.HBM.Value), 100, 600)
		double := 1.0 // TPUs may compute 8 bits as fast as 16, but GPUs are twice as fast
		if k.Vendor == "NVIDIA" {
			double = 1.99
		}
		between("FP8 / BF16", flops(hardware.FP8)/half, double, 2.03)
		between("INT8 / BF16", flops(hardware.INT8)/half, double, 2.03)
		between("TF32 / BF16", flops(hardware.TF32)/half, 0.48, 0.52)
		between("FP32 / BF16", flops(hardware.FP32)/half, 0.03, 0.52)
		between("FP16 / BF16", flops(hardware.FP16)/half, 1, 1)
		between("BF16 / FP16", flops(hardware.BF16)/half, 1, 1)
		between("HBM / node", float64(k.HBM.Value)/float64(k.Node.Value), 3, 64)
		between("network / node", float64(k.Network.Value)/float64(k.Node.Value), 0.01, 0.12)
		if half == 0 || !k.Memory.Known() || !k.HBM.Known() || !k.Node.Known() || k.PerNode < 1 {
			t.Errorf("%s lacks a number that every kind has", k.Name)
		}
		if torus := k.Topology.Dimensions() > 0; torus != (k.Wrap > 0) || torus != (k.Host > 0) || torus && k.PerNode%k.Host != 0 {
			t.Errorf("%s: topology %s, wrap %d", k.Name, k.Topology, k.Wrap)
		}
	}
}

// Kinds of the same processor compute equally fast, and a later generation is
// never slower.
func TestGenerations(t *testing.T) {
	for _, line := range [][]string{
		{"v100-32", "a100-40", "a100-80", "h100-80", "h200-141", "b200-180"},
		{"h100-pcie", "h100-80"},
		{"l4-24", "l40s-48"},
		{"tpu-v4", "tpu-v5p"},
		{"tpu-v5e", "tpu-v6e"},
	} {
		for i := range line[1:] {
			a, b := find(t, line[i]), find(t, line[i+1])
			after := b.Cells()
			for j, c := range a.Cells() {
				if after[j].Known() && after[j].Value < c.Value/100*99 { // drivers differ in how much memory programs get
					t.Errorf("%s of %s is %d, less than %d of %s", c.Name, b.Name, after[j].Value, c.Value, a.Name)
				}
			}
		}
	}
	if v5p, v7 := find(t, "tpu-v5p"), find(t, "tpu-v7"); v7.Node.Value*2 != v5p.Node.Value || v7.Memory.Value < v5p.Memory.Value/100*99 {
		t.Error("two devices of TPU7x have the links of a chip of v5p")
	}
	h100, h200 := find(t, "h100-80"), find(t, "h200-141")
	for p, c := range h100.FLOPs {
		if h200.FLOPs[p].Value != c.Value {
			t.Errorf("%s of the H200 differs from the H100's", p)
		}
	}
}

func find(t *testing.T, name string) hardware.Kind {
	t.Helper()
	k, err := hardware.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestEfficiencyOf checks that every efficiency is an interval with a source, and that
// devices without published runs share one.
func TestEfficiencyOf(t *testing.T) {
	other := hardware.EfficiencyOf("", hardware.BF16)
	none := []string{"v100-32", "h100-pcie", "l4-24", "l40s-48", "rtx-4090", "rtx-5090", "mi300x-192"}
	for _, name := range hardware.Names() {
		for _, p := range []hardware.Precision{hardware.BF16, hardware.TF32, hardware.FP8} {
			for _, e := range []hardware.Efficiency{hardware.EfficiencyOf(name, p), hardware.NarrowEfficiency(p)} {
				if e.Least < 1 || e.Least >= e.Most || e.Most > 1000 || e.Source == "" {
					t.Errorf("%s: %+v", name, e)
				}
			}
		}
		if e := hardware.EfficiencyOf(name, hardware.BF16); slices.Contains(none, name) != (e == other) {
			t.Errorf("%s: %+v, of other devices %+v", name, e, other)
		}
	}
	if a, b := hardware.EfficiencyOf("h100-80", hardware.BF16), hardware.EfficiencyOf("h100-80", hardware.FP8); a.Most <= b.Most {
		t.Errorf("an H100 reaches %+v with 16 bits, and %+v with 8", a, b)
	}
}
