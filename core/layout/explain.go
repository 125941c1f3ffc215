package layout

import (
	"cmp"

	"github.com/meshfeed/meshfeed/core/problem"
	"github.com/meshfeed/meshfeed/core/sharding"
)

// Explain returns a few sentences about what a problem of this code means and
// what to do, or "" for an unknown code.
func Explain(code problem.Code) string { return cmp.Or(explanations[code], sharding.Explain(code)) }

var explanations = map[problem.Code]string{
	TooLarge:      `A size is beyond 2^53 bytes, which JSON cannot hold exactly. The cause is nearly always a mistake in a shape or in the batch size.`,
	TooManyBlocks: `A process gathers more distinct blocks per step than is allowed. Blocks are counted over all arrays. Split fewer dimensions inside a process, or use more processes.`,
	TooManyRanges: `A process takes too many separate row ranges of one array, because the mesh scatters its devices over the batch dimension. Order the mesh so that the devices of a process are neighbors along the axes of the batch.`,
	NameTaken:     `The mask or an extra has the name of another array. Set mask_name, or rename the array.`,
	UnknownField:  `An array takes a field that the dataset does not have. Without "field", an array takes the field of its own name. "meshfeed inspect FILE" lists the fields.`,
	FieldShape:    `The rows of the field, or the columns that are taken of them, have another shape than the array after its batch dimensions. Correct the shape, or take other columns.`,
	FieldType:     `The field cannot be delivered as this element type. A field keeps its type, or a 64-bit type is narrowed if JAX runs without x64. There are no other conversions. Write the field's own type.`,
	ColumnsRange:  `Columns are outside the first dimension of the field's rows. A column range is [start, stop), from 0.`,
	ColumnsNumber: `The number of columns differs from the array's first dimension after the batch dimensions. Make both equal.`,
	NoArrays:      `The layout has no array, so there is nothing to deliver.`,
	NoStep:        `An epoch has no step: the dataset has fewer records than a batch, and "drop" leaves the remainder out. Choose a smaller batch, or "remainder": "pad".`,
	Uneven:        `"remainder": "error" refuses a dataset if the batch size does not divide its records. Choose another batch size, "drop" or "pad".`,
	UnknownOrder:  `There is no order with this name. Orders are "sequential.1", "shuffle.1", "local.1:G:B" with G parts for batches of B, and "blocks.1:W:B:H" with windows of W blocks of B records. Without their parameters, write "local", "blocks" or "blocks:W:B".`,
	DeviceBudget:  `The fullest device needs more bytes for one batch than budget.device_bytes allows. Split the arrays over more axes, or choose a smaller batch.`,
	HostBudget:    `The fullest process needs more host memory for its batches than budget.host_bytes allows: its part of a batch, times prefetch + 1. Lower prefetch or the batch size, or use more processes.`,
	Replicated:    `Every device gets the whole of a batch array. That is right for values that every device needs; else name an axis for the batch dimension.`,
	Unbalanced:    `Processes read different amounts, so the slowest one sets the pace. Order the mesh so that each process holds as many distinct rows as the others.`,
	NoPrefetch:    `"prefetch": 0 reads a batch only when it is asked for, so that reading never overlaps the step. Use 2, unless host memory is short.`,
	SplitMicro:    `The batch is a list, [micro-batches, rows], and a spec splits the dimension of the micro-batches. A device then holds whole micro-batches instead of a part of each, and a loop over them uses some devices only. Write null for that dimension and the axis for the next one.`,
	FarShuffle:    `The files are on other machines, and a full shuffle spreads the records of each file over all processes. So each host fetches nearly all files, before the first steps. A host keeps what it has fetched on disk, and its processes share it. Order "local" gives each process a part of its own, and a host fetches that part. Order "blocks" fetches as much as a full shuffle in an epoch, but only a window at a time.`,
	FarRead:       `The files are on other machines. The message has the most that a process fetches in the first epoch, if it is alone on its host, and the requests and seconds that this takes at a stated rate. Later epochs read the copy on the disk of the host.`,
	Windows:       `The order "blocks" shuffles within windows of several blocks of the dataset. The message has the cost in quality: how much the mean of a batch varies if all records of a block are alike, in relation to a full shuffle. It also has the bytes of a window, which a loader keeps in memory if the data have to be decoded. A larger window shuffles better.`,
	Loading:       `Another way of loading than "process" is chosen. It reads more bytes, or moves bytes between devices. It is there for comparison; "process" reads what is needed, once.`,
	UnusedAxis:    `No array is split over an axis of the mesh, although some are over others. All arrays are replicated along it. That is right for an axis that splits only the model's weights.`,
	SameRows:      `Several processes read the same rows, because an axis that does not split the batch crosses processes. That is right for replicas of a model that spans processes; each of them must get the same bytes.`,
	TinyShards:    `Shards are much smaller than the 64 bytes that each takes in host memory, so memory is wasted. Join small fields into one array, or split them over fewer axes.`,
	IdleProcess:   `A process number below the highest owns no device of the mesh. It reads nothing. Check the list of devices.`,
}
