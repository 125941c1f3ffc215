package document

import _ "embed"

//go:embed diagram.schema.json
var schema string

// Schema returns the JSON Schema of diagram documents, of draft 2020-12. Every
// document that [Draw] draws is valid by it. Draw refuses more than
// a schema can say, such as sizes that do not divide.
func Schema() string { return schema }
