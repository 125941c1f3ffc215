package gomlxfeed

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/gomlx/compute"

	"github.com/meshfeed/meshfeed/core/dtype"
)

// TestMain lets the test binary run as a prober with the fake devices, and as a
// program that only opens devices.
func TestMain(m *testing.M) {
	Register("fake", fake{})
	RunProbe()
	if spec, asked := os.LookupEnv("GOMLXFEED_TEST_OPEN"); asked {
		os.Exit(openAndLeave(spec))
	}
	os.Exit(m.Run())
}

// openAndLeave opens devices and uses them without output. The exit status is 0
// if the environment is unchanged.
func openAndLeave(spec string) int {
	before := os.Environ()
	d, err := Open(context.Background(), spec)
	if err != nil {
		return 2
	}
	t, err := d.put(compute.DeviceNum(d.Num()-1), shapeOf(dtype.Int8, []int{3}), []byte{1, 2, 3})
	if err != nil || d.free(t, 3) != nil || d.Close() != nil {
		return 3
	}
	if !slices.Equal(before, os.Environ()) {
		return 4
	}
	return 0
}

// devicesNamed returns n descriptions.
func devicesNamed(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("FAKE_%d", i)
	}
	return list
}
