package document

import "github.com/meshfeed/meshfeed/core/strategy"

// Columns is the width of the text.
const Columns = 100

// Table writes a report as text.
func Table(r *strategy.Report) string { return "" }
