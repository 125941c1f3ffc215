package document

import _ "embed"

//go:embed layout.schema.json
var schema string

// Schema returns the JSON Schema of layout documents, of draft 2020-12. Every
// document that [Parse] accepts is valid by it. Parse refuses more than a
// schema can say, such as keys that repeat or meshes of more than 2^20 devices.
func Schema() string { return schema }
