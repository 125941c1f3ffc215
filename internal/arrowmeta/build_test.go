package arrowmeta_test

import "github.com/meshfeed/meshfeed/internal/arrowmeta/arrowmetatest"

type (
	fields = arrowmetatest.Table
	vec    = arrowmetatest.Vec
	shared = arrowmetatest.Shared
	offset = arrowmetatest.Offset
)

var (
	numbers     = arrowmetatest.Numbers
	offsets     = arrowmetatest.Offsets
	flat        = arrowmetatest.Flat
	field       = arrowmetatest.Field
	message     = arrowmetatest.Message
	schemaOf    = arrowmetatest.SchemaOf
	batchOf     = arrowmetatest.BatchOf
	framed      = arrowmetatest.Framed
	endOfStream = arrowmetatest.EndOfStream
	streamOf    = arrowmetatest.StreamOf
	fileOf      = arrowmetatest.FileOf
)
