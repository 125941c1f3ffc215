package host_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/wasm/host"
)

// A layout with the most devices and processes gets a reply within the memory of
// an instance, however its rows are scattered. On quiet processors 206 MiB are enough.
// Beside other work garbage is collected later, and the heap is larger: hosts allow
// almost twice as much. The test leaves 16 MiB of it unused.
func TestLargestMesh(t *testing.T) {
	if os.Getenv("MESHFEED_DEEP") == "" {
		t.Skip("takes a minute: set MESHFEED_DEEP=1")
	}
	const margin = 256 // pages
	narrow, err := host.Open(t.Context(), module, host.Options{CacheDir: cacheDir, MemoryPages: host.DefaultMemoryPages - margin})
	if err != nil {
		t.Fatal(err)
	}
	defer narrow.Close()
	const scattered = `"x":{"shape":["B",64],"dtype":"int8","spec":[["model","data","fsdp"]]}`
	for name, rest := range map[string]string{
		"scattered in several ways": `"arrays":{` + scattered + `,"y":{"shape":["B"],"dtype":"int8","spec":[["fsdp","model","data"]]},"z":{"shape":["B"],"dtype":"int8","spec":[["data","model"]]}}`,
		"resharded":                 `"loading":"reshard","arrays":{` + scattered + `}`,
	} {
		text := fmt.Sprintf(`{"meshfeed":1,"mesh":{"axes":[["data",1024],["fsdp",64],["model",16]],"processes":%d},"batch":{"size":%d},%s}`, layout.MaxProcesses, mesh.MaxDevices, rest)
		reply, err := narrow.Describe(t.Context(), []byte(text))
		if err != nil || !strings.HasSuffix(string(reply), `,"error":null}`) {
			t.Errorf("%s: %.100s, %v", name, reply, err)
		}
	}
}
