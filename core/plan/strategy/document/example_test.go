package document_test

import (
	"fmt"
	"log"

	"github.com/meshfeed/meshfeed/core/plan/strategy"
	"github.com/meshfeed/meshfeed/core/plan/strategy/document"
)

// A document is the question. Functions Text, HTML and Report write the answer.
func ExampleParse() {
	question, err := document.Parse([]byte(`{"meshfeed":1,
	 "model":{"preset":"gpt2"}, "training":{"batch":64}, "cluster":{"device":"a100-40","devices":4}}`))
	if err != nil {
		log.Fatal(err)
	}
	report, err := strategy.Advise(question)
	if err != nil {
		log.Fatal(err)
	}
	best := report.Candidates[report.Best]
	fmt.Println(best.Mesh, best.Fits, len(document.Report(report)) > 0)

	_, err = document.Parse([]byte(`{"meshfeed":1, "model":{"preset":"gpt2"}, "training":{"bach":64}}`))
	fmt.Println(err)
	// Output:
	// [{data 4}] true true
	// strategy: /training/bach: "bach" is not a key; did you mean "batch"? The keys here are batch, tokens, total_tokens, micro_batch, optimizer, precision, recomputation, attention, schedule, chunks, sequence_parallel, overlap, efficiency, link_efficiency
}
