package layout

import (
	"github.com/meshfeed/meshfeed/core/problem"
	"github.com/meshfeed/meshfeed/core/sharding"
)

// The codes of problems. No loader runs with a layout that has an error. If a code
// has Problem.Facts, its comment ends with their names.
const (
	// Errors of one array.
	UnknownAxis   problem.Code = sharding.UnknownAxis   // a spec names an axis that the mesh does not have; facts dimension
	DuplicateAxis problem.Code = sharding.DuplicateAxis // a spec names an axis twice; facts dimension, other
	SpecRank      problem.Code = sharding.SpecRank      // a spec has more entries than the array has dimensions; facts entries, rank
	Indivisible   problem.Code = sharding.Indivisible   // a dimension does not divide by its number of tiles; facts size, tiles, remainder
	TooLarge      problem.Code = "too-large"            // sizes beyond 2^53 bytes
	TooManyBlocks problem.Code = "too-many-blocks"      // a process gathers more than MaxBlocks blocks; facts blocks, limit
	TooManyRanges problem.Code = "too-many-ranges"      // a process takes more than MaxRanges separate row ranges for an array; facts ranges, limit
	NameTaken     problem.Code = "name-taken"           // the mask or an extra has the name of another array

	// Errors of an array and its field.
	UnknownField  problem.Code = "unknown-field"  // the dataset has no such field
	FieldShape    problem.Code = "field-shape"    // the field's rows, or the columns taken of them, have another shape
	FieldType     problem.Code = "field-dtype"    // the field cannot be delivered as this type
	ColumnsRange  problem.Code = "columns-range"  // columns are outside the row; facts start, stop, size
	ColumnsNumber problem.Code = "columns-number" // the number of columns differs from the shape; facts columns, size

	// Errors of the whole layout.
	NoArrays     problem.Code = "no-arrays"     // there is nothing to deliver
	NoStep       problem.Code = "no-step"       // an epoch has no step; facts records, batch
	Uneven       problem.Code = "remainder"     // "remainder": "error" and the records do not divide; facts records, batch, remainder
	UnknownOrder problem.Code = "unknown-order" // unknown name of an order
	DeviceBudget problem.Code = "device-budget" // a device needs more bytes than it may; facts bytes, budget
	HostBudget   problem.Code = "host-budget"   // a process needs more bytes than it may; facts bytes, budget, process

	// Warnings.
	Replicated problem.Code = "replicated"          // every device gets the whole of a batch array; facts devices, bytes
	Unbalanced problem.Code = "unbalanced"          // processes read different amounts; facts least, most
	NoPrefetch problem.Code = "no-prefetch"         // reading does not overlap the step
	SplitMicro problem.Code = "split-micro-batches" // a device holds whole micro-batches and not a part of each; facts dimension, size, tiles, arrays

	FarShuffle problem.Code = "far-shuffle" // every process fetches nearly all files far away; facts bytes, processes, total_bytes, requests, seconds

	// Infos.
	Windows     problem.Code = "windows"      // the order shuffles within windows of blocks; facts blocks, windows, window, records, bytes, variance_percent
	Loading     problem.Code = "loading"      // another way of loading than the default reads more or moves bytes; facts read_bytes, process_read_bytes and, with "reshard", interconnect_bytes, network_bytes
	UnusedAxis  problem.Code = "unused-axis"  // no array is partitioned over an axis, though some are over others; facts size
	SameRows    problem.Code = "same-rows"    // several processes read the same rows; facts processes, groups, read_bytes, batch_bytes
	TinyShards  problem.Code = "tiny-shards"  // shards much smaller than the 64 bytes that each takes; facts bytes, slot
	FarRead     problem.Code = "far-read"     // what a process fetches of files far away; facts bytes, processes, total_bytes, requests, seconds
	IdleProcess problem.Code = "idle-process" // a process number below the highest owns no device; facts process, processes
)

// Codes lists the codes of problems, errors first.
func Codes() []problem.Code {
	return []problem.Code{
		UnknownAxis, DuplicateAxis, SpecRank, Indivisible, TooLarge, TooManyBlocks, TooManyRanges, NameTaken,
		UnknownField, FieldShape, FieldType, ColumnsRange, ColumnsNumber,
		NoArrays, NoStep, Uneven, UnknownOrder, DeviceBudget, HostBudget,
		Replicated, Unbalanced, NoPrefetch, SplitMicro, FarShuffle,
		Windows, Loading, UnusedAxis, SameRows, TinyShards, FarRead, IdleProcess,
	}
}
