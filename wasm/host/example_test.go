package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/meshfeed/meshfeed/wasm/host"
)

// A service checks documents that it does not trust: at most two at a time, each
// for at most ten seconds and in 64 MiB.
func ExampleOpen() {
	ctx := context.Background()
	v, err := host.Open(ctx, module, host.Options{MaxInstances: 2, Timeout: 10 * time.Second, MemoryPages: 1024})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer v.Close()
	reply, err := v.Describe(ctx, []byte(`{"meshfeed":1,"mesh":{"axes":[["data",4]]},
		"arrays":{"x":{"shape":["B",8],"dtype":"float32","spec":["data"]}},"batch":{"size":30}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	var described struct {
		Report struct {
			Problems []struct{ Severity, Code, Hint string }
		}
	}
	if err := json.Unmarshal(reply, &described); err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range described.Report.Problems {
		fmt.Println(p.Severity, p.Code, "-", p.Hint)
	}
	// Output: error indivisible - use a batch of 28 or 32
}
