package layout

import _ "embed"

//go:embed layout.schema.json
var schema string

// Schema gives the JSON Schema of layout documents, of draft 2020-12. Every
// document that [Parse] accepts fits it; Parse also refuses what a schema cannot
// say, such as keys that repeat or axes of more than 2^20 devices.
func Schema() string { return schema }
