package document

import _ "embed"

//go:embed memory.schema.json
var schema string

// Schema returns the JSON Schema of memory documents, of draft 2020-12. Every
// document that [Parse] accepts is valid by it. Parse refuses more than
// a schema can say, such as keys that repeat.
func Schema() string { return schema }
