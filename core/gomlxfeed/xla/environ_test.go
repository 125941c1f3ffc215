//go:build cgo && (linux || darwin)

package xla

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	xlabackend "github.com/gomlx/go-xla/compute/xla"
)

// tellEnvironment makes the test binary print its environment after the
// initialization of all packages, and exit.
const tellEnvironment = "MESHFEED_TELL_ENVIRONMENT"

func TestEnvironmentIsLeftAlone(t *testing.T) {
	own := slices.DeleteFunc(os.Environ(), func(s string) bool {
		return strings.HasPrefix(s, "TF_CPP_MIN_LOG_LEVEL=") || strings.HasPrefix(s, "HOME=")
	})
	for _, set := range [][]string{nil, {"HOME=/root"}, {"HOME="}, {"TF_CPP_MIN_LOG_LEVEL="}, {"TF_CPP_MIN_LOG_LEVEL=1"}, {"XLA_FLAGS=--x"}} {
		env := append(append(slices.Clone(own), set...), tellEnvironment+"=1")
		cmd := exec.Command(os.Args[0])
		cmd.Env = env
		var stderr strings.Builder
		cmd.Stderr = &stderr
		got, err := cmd.Output()
		if err != nil || stderr.Len() > 0 {
			t.Fatalf("%v, standard error %q", err, stderr.String())
		}
		if want := fmt.Sprint(env); string(got) != want {
			t.Errorf("importing the package changes the environment:\ngot  %s\nwant %s", got, want)
		}
	}
}

func TestOpeningLeavesTheEnvironmentAlone(t *testing.T) {
	path := fake(t, "platform=cuda;attribute=cuda_version;devices=1")
	before := os.Environ()
	d := opened(t, "xla:"+path)
	if after := os.Environ(); !slices.Equal(after, before) {
		t.Errorf("got  %v\nwant %v", after, before)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// TestNothingIsDownloaded opens a plugin and then asks go-xla for another one by
// name. go-xla searches locally but does not download.
func TestNothingIsDownloaded(t *testing.T) {
	d := opened(t, "xla:"+fake(t, ""))
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1") // no server listens there
	_, err := xlabackend.New("no_such_plugin")
	if err == nil || strings.Contains(err.Error(), "auto-install") {
		t.Errorf("got %v", err)
	}
	if made, _ := os.ReadDir(home); len(made) > 0 {
		t.Errorf("%v was made in the home folder", made)
	}
}
