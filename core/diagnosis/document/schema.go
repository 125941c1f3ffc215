package document

import _ "embed"

//go:embed measurements.schema.json
var schema string

//go:embed diagnosis.schema.json
var reportSchema string

// Schema returns the JSON Schema of measurements documents, of draft 2020-12. Every document
// that [Diagnose] accepts is valid by it. Diagnose refuses more than a schema can say, such
// as keys that repeat.
func Schema() string { return schema }

// ReportSchema returns the JSON Schema of what [Report] writes.
func ReportSchema() string { return reportSchema }
