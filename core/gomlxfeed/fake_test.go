package gomlxfeed

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/gomlxfeed/internal/virtual"
	"github.com/meshfeed/meshfeed/core/status"
)

// fake is an opener. Its option "do" selects how its probe misbehaves.
type fake struct{}

func (fake) Probe(_ context.Context, s Spec, stage func(string)) (Facts, error) {
	n := cmp.Or(s.Devices, 4)
	facts := Facts{Name: "fake-cpu", Platform: "cpu", API: "FAKE 1.2", Shared: true, Devices: devicesNamed(n), DTypes: []dtype.Type{dtype.Float32, dtype.Int8}}
	if _, set := os.LookupEnv(probeVariable); set {
		return Facts{}, fail("%s is set: a program that the plugin starts would act as a prober", probeVariable)
	}
	stage("loading the plugin")
	stage("creating the client")
	fmt.Println("noise on standard output")
	fmt.Fprint(os.Stderr, "noise on\x1b[31m standard error\n\n")
	switch s.Options["do"] {
	case "error":
		return Facts{}, status.New(status.Unsupported, "xla", "PJRT API 1.0 is not 0.x").WithHint("use another plugin")
	case "panic":
		panic("no client")
	case "exit":
		os.Exit(7)
	case "hang":
		select {}
	case "garbage":
		_, _ = os.NewFile(answerFile, "").WriteString("here I am\n")
	case "none":
		facts.Devices = nil
	case "more":
		facts.Devices = devicesNamed(n + 1)
	case "nameless":
		facts.Name = ""
	case "orphan":
		return facts, leaveBehind(s.Path + ".pid")
	case "late":
		_ = json.NewEncoder(os.NewFile(answerFile, "")).Encode(line{Facts: &facts})
		die("kill")
	default:
		die(s.Options["do"])
	}
	return facts, nil
}

// leaveBehind starts a process that inherits every file of this one, and writes
// its process ID to a file.
func leaveBehind(path string) error {
	sleeper := exec.Command("sleep", "600")
	sleeper.Stderr = os.Stderr
	if err := sleeper.Start(); err != nil {
		return err
	}
	return os.WriteFile(path, fmt.Append(nil, sleeper.Process.Pid), 0o600)
}

func (fake) Open(_ context.Context, s Spec, facts *Facts) (Opened, error) {
	if facts == nil {
		facts = &Facts{Name: "fake-unprobed", Devices: devicesNamed(s.Devices)}
	}
	n := len(facts.Devices)
	if s.Options["do"] == "fewer" {
		n--
	}
	b, err := virtual.New(n)
	if err != nil {
		return Opened{}, err
	}
	return Opened{Name: facts.Name, Platform: facts.Platform, API: facts.API, DTypes: facts.DTypes, Backend: b}, nil
}

// stuck panics when it is finalized.
type stuck struct{ compute.Backend }

func (stuck) Finalize() { panic("stuck\nwith a second line") }

// brittle panics when a buffer is created on device 1, and fails on device 2.
type brittle struct{ compute.Backend }

func (b brittle) HasSharedBuffers() bool { return false }

func (b brittle) BufferFromFlatData(d compute.DeviceNum, flat any, s shapes.Shape) (compute.Buffer, error) {
	switch d {
	case 1:
		panic(fmt.Errorf("wire cut\n[1 2 3] are the values"))
	case 2:
		return nil, fmt.Errorf("device 2 is full\n[1 2 3] are the values")
	}
	return b.Backend.BufferFromFlatData(d, flat, s)
}
