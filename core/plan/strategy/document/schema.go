package document

import _ "embed"

//go:embed strategy.schema.json
var schema string

//go:embed report.schema.json
var reportSchema string

// Schema returns the JSON Schema of strategy documents, of draft 2020-12. Every
// document that [Parse] accepts is valid by it. Parse refuses more than a schema
// can say, such as keys that repeat.
func Schema() string { return schema }

// ReportSchema returns the JSON Schema of the text that [Report] writes.
func ReportSchema() string { return reportSchema }
