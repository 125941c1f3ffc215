package hardware_test

import (
	"regexp"
	"testing"

	"github.com/meshfeed/meshfeed/core/hardware"
)

// cells lists the cells of a kind with their names.
func cells(k hardware.Kind) map[string]hardware.Cell {
	list := map[string]hardware.Cell{"memory": k.Memory, "HBM": k.HBM, "node": k.Node, "network": k.Network}
	for p, cell := range k.FLOPs {
		list[string(p)] = cell
	}
	return list
}

func TestEveryKnownCellHasItsSourceAndDate(t *testing.T) {
	date := regexp.MustCompile(`^(read )?20[0-9][0-9]-(0[1-9]|1[0-2])$`)
	for _, k := range hardware.All() {
		for name, c := range cells(k) {
			if c.Known() && (c.Source == "" || !date.MatchString(c.Date)) {
				t.Errorf("%s: %s has source %q and date %q", k.Name, name, c.Source, c.Date)
			}
			if !c.Known() && c != (hardware.Cell{}) {
				t.Errorf("%s: %s is not known, but has %+v", k.Name, name, c)
			}
		}
	}
}

func TestNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range hardware.All() {
		if seen[k.Name] || seen[k.Title] || k.Name == "" || k.Title == "" || k.Vendor == "" {
			t.Errorf("%q (%q of %q) is not unique", k.Name, k.Title, k.Vendor)
		}
		seen[k.Name], seen[k.Title] = true, true
	}
}

func TestFind(t *testing.T) {
	for _, k := range hardware.All() {
		if found, err := hardware.Find(k.Name); err != nil || found.Title != k.Title {
			t.Errorf("Find(%s) = %v, %v", k.Name, found.Title, err)
		}
	}
	for name, want := range map[string]string{
		"h100":     `hardware: there is no device kind "h100"; the nearest kinds are "h100-80", "h100-pcie"; for another device, give its own numbers`,
		"H100-SXM": `hardware: there is no device kind "H100-SXM"; the nearest kinds are "h100-80", "h100-pcie"; for another device, give its own numbers`,
		"A100_40":  `hardware: there is no device kind "A100_40"; the nearest kinds are "a100-40", "a100-80"; for another device, give its own numbers`,
		"l40":      `hardware: there is no device kind "l40"; the nearest kinds are "l4-24", "l40s-48"; for another device, give its own numbers`,
		"h10":      `hardware: there is no device kind "h10"; the nearest kinds are "h100-80", "h100-pcie"; for another device, give its own numbers`,
		"b20O":     `hardware: there is no device kind "b20O"; the nearest kinds are "b200-180"; for another device, give its own numbers`,
		"v5p":      `hardware: there is no device kind "v5p"; the nearest kinds are "tpu-v5p"; for another device, give its own numbers`,
		"mi300x":   `hardware: there is no device kind "mi300x"; use "v100-32", "a100-40", "a100-80", "h100-80", "h100-pcie", "h200-141", "b200-180", "l4-24", "l40s-48", "tpu-v4", "tpu-v5e", "tpu-v5p", "tpu-v6e", "tpu-v7", or give the numbers of the device`,
	} {
		if _, err := hardware.Find(name); err == nil || err.Error() != want {
			t.Errorf("Find(%s):\ngot  %v\nwant %s", name, err, want)
		}
	}
}
