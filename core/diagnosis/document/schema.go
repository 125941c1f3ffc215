package document

import _ "embed"

//go:embed diagnosis.schema.json
var reportSchema string

// ReportSchema returns the JSON Schema of what [Report] writes.
func ReportSchema() string { return reportSchema }
