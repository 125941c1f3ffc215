package document

import _ "embed"

//go:embed report.schema.json
var reportSchema string

// ReportSchema returns the JSON Schema of the text that [Report] writes.
func ReportSchema() string { return reportSchema }
