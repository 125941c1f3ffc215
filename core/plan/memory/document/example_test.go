package document_test

import (
	"fmt"
	"log"

	"github.com/meshfeed/meshfeed/core/plan/memory/document"
)

// Functions Report and HTML write the same numbers as JSON and for a page.
func ExampleText() {
	usage, err := document.Measure([]byte(`{"meshfeed":1, "mesh":{"axes":[["fsdp",8]]}, "optimizer":"adamw",
	 "arrays":{"w":{"shape":[4096,4096], "dtype":"bfloat16", "spec":["fsdp"]}}}`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(document.Text(usage))
	// Output:
	// memory of each of 8 devices (fsdp=8)
	//
	// array                    shape              dtype         spec                        bytes copies
	// w                        (4096, 4096)       bfloat16      P('fsdp',)                  4 MiB 1
	//
	// parameters                    4 MiB  16,777,216 parameters
	// optimizer                     8 MiB  adamw
	// stored                       12 MiB  exact
	// gradients                     4 MiB  within a step, unless the compiler frees them early
}
