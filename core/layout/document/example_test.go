package document_test

import (
	"fmt"

	"github.com/meshfeed/meshfeed/core/layout/document"
)

func ExampleParse() {
	d, err := document.Parse([]byte(`{
	  "meshfeed": 1,
	  "mesh": {"axes": [["data", 4]], "processes": 1},
	  "arrays": {"x": {"shape": ["B", 16], "dtype": "float32", "spec": [["data"]]}},
	  "batch": {"size": 64, "remainder": "drop"}}`))
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\n", document.Canonical(d))

	_, err = document.Parse([]byte(`{"meshfeed": 1, "mesh": {"Axes": []}}`))
	fmt.Println(err)
	// Output:
	// {"meshfeed":1,"mesh":{"axes":[["data",4]]},"arrays":{"x":{"shape":["B",16],"dtype":"float32","spec":["data"]}},"batch":{"size":64}}
	// layout: /mesh/Axes: "Axes" is not a key; write "axes": keys are matched by case
}
