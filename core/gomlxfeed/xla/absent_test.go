//go:build cgo && (linux || darwin)

package xla

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/meshfeed/meshfeed/core/gomlxfeed"
	"github.com/meshfeed/meshfeed/core/status"
)

// TestAbsentHardware opens the plugins of GPUs and TPUs on a machine without them.
func TestAbsentHardware(t *testing.T) {
	const noGPU = "it could not create a client: No visible GPU devices (PJRT code 9); check nvidia-smi, CUDA_VISIBLE_DEVICES and the option visible_devices"
	for _, c := range []struct{ plugin, hardware, want string }{
		{"cuda12/jax_plugins/xla_cuda12/xla_cuda_plugin.so", "/dev/nvidia*", noGPU},
		{"cuda13/jax_plugins/xla_cuda13/xla_cuda_plugin.so", "/dev/nvidia*", noGPU},
		{"tpu/libtpu/libtpu.so", "/dev/accel*", "it could not create a client: TPU initialization failed: No jellyfish device found (PJRT code 5)"},
	} {
		t.Run(filepath.Base(c.plugin), func(t *testing.T) {
			path := fetchedPlugin(t, c.plugin, "make plugins-absent")
			if here, _ := filepath.Glob(c.hardware); len(here) > 0 {
				t.Skipf("%s is there: make gpu-check-go MESHFEED_PJRT_PLUGIN=%s", here[0], path)
			}
			check(t, "xla:"+path, gomlxfeed.OpenOptions{Timeout: time.Minute}, status.Unsupported, c.want)
		})
	}
}
