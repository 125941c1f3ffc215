package local_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio/blob/blobtest"
	"github.com/meshfeed/meshfeed/arrowio/internal/local"
)

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	blobtest.Run(t, local.Opener{}, dir, func(name string, data []byte) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	})
}
