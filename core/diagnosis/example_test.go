package diagnosis_test

import (
	"fmt"
	"time"

	"github.com/meshfeed/meshfeed/core/diagnosis"
)

func ExampleDiagnose() {
	r := diagnosis.Diagnose(diagnosis.Measurements{
		Batches: 400, Wall: 4 * time.Second, Wait: 2400 * time.Millisecond,
		Build: 4 * time.Second, Gather: 3900 * time.Millisecond, Decode: 3500 * time.Millisecond, Prefetch: 2,
	})
	fmt.Println(r.Bound, r.Action)
	for _, sentence := range r.Sentences {
		fmt.Println(sentence)
	}
	// Output:
	// decode write-uncompressed
	// In 400 batches the loop waited for data for 60 % of the time: 6.0 ms of 10 ms a batch.
	// Decompressing bounds it, with 8.8 ms a batch; without it the loop would be 2.5 times as fast.
	// Write the files without compression: meshfeed convert FILE… FOLDER.
}
