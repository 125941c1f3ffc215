package diagnosis_test

import (
	"strings"
	"testing"
	"time"

	"github.com/meshfeed/meshfeed/core/diagnosis"
)

const ms = time.Millisecond

var none diagnosis.Change

// loop returns measurements of 100 batches with these times of a batch, in milliseconds.
func loop(wall, wait, handOver, build, gather, storage, decode float64) diagnosis.Measurements {
	sum := func(f float64) time.Duration { return time.Duration(f * 100 * float64(ms)) }
	return diagnosis.Measurements{
		Batches: 100, Wall: sum(wall), Wait: sum(wait), HandOver: sum(handOver), Build: sum(build), Gather: sum(gather), Storage: sum(storage),
		Decode: sum(decode), Rows: 6400, Bytes: 100 << 20, Gathered: 100 << 20, Arrays: 2, Combinable: 1, Devices: 8, Platform: "cpu", BatchSize: 64, Prefetch: 2,
	}
}

// with returns changed measurements.
func with(m diagnosis.Measurements, change func(*diagnosis.Measurements)) diagnosis.Measurements {
	change(&m)
	return m
}

// synced describes devices that compute in the step, and have nothing to do at its end.
var synced = diagnosis.Samples{Steps: 10, Idle: 10, Dry: 10, Inside: 10, Busy: 8, Step: 100 * ms, CPU: 20 * ms}

// ahead describes a program that runs ahead of its devices.
var ahead = diagnosis.Samples{Steps: 10, Inside: 10, Busy: 10, Step: 100 * ms, CPU: 20 * ms}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		name   string
		given  diagnosis.Measurements
		bound  diagnosis.Bound
		faster float64
		action diagnosis.Action
		change diagnosis.Change
		text   string
	}{
		{
			"a slow step", loop(10, 0.1, 0.1, 0.7, 0.6, 0, 0), diagnosis.Step, 14.3, diagnosis.Nothing, none,
			"In 100 batches the loop waited for data for 2.0 % of the time: 200 µs of 10 ms a batch.\n" +
				"Your step bounds it, with 9.8 ms a batch; without it the loop would be 14 times as fast.\n" +
				"Nothing to change: the input alone is 14 times as fast.",
		},
		{
			"a compressed file", loop(10, 6, 0.1, 10, 9.8, 0.5, 9), diagnosis.Decode, 2.5, diagnosis.WriteUncompressed, none,
			"In 100 batches the loop waited for data for 61 % of the time: 6.1 ms of 10 ms a batch.\n" +
				"Decompressing bounds it, with 9.0 ms a batch; without it the loop would be 2.5 times as fast.\n" +
				"Write the files without compression: meshfeed convert FILE… FOLDER.",
		},
		{
			"decoding ahead on the processors of the loop", with(loop(4.4, 0.5, 2, 0.9, 0.6, 0, 0.4), func(m *diagnosis.Measurements) {
				m.Decoding, m.Delayed, m.Processors = 400*ms, 100*ms, 2
			}), diagnosis.Decode, 1.8, diagnosis.WriteUncompressed, none,
			"In 100 batches the loop waited for data for 57 % of the time: 2.5 ms of 4.4 ms a batch.\n" +
				"Decompressing bounds it, with 4.0 ms of processor time a batch; without it the loop could be up to 1.8 times as fast.\n" +
				"Write the files without compression: meshfeed convert FILE… FOLDER.",
		},
		{
			"decoding ahead beside a step", with(loop(10, 0.1, 0.1, 0.7, 0.6, 0, 0), func(m *diagnosis.Measurements) {
				m.Decoding, m.Delayed, m.Processors = 1000*ms, 500*ms, 2
			}), diagnosis.Decode, 2, diagnosis.WriteUncompressed, none, "",
		},
		{
			"decoding ahead beside a step on other devices", with(loop(10, 0.1, 0.1, 0.7, 0.6, 0, 0), func(m *diagnosis.Measurements) {
				m.Decoding, m.Delayed, m.Processors, m.Platform = 1000*ms, 500*ms, 2, "gpu"
			}), diagnosis.Step, 14.3, diagnosis.Nothing, none, "",
		},
		{
			"decoding ahead on idle processors", with(loop(4.4, 0.5, 2, 0.9, 0.6, 0, 0.4), func(m *diagnosis.Measurements) {
				m.Decoding, m.Delayed, m.Processors = 400*ms, 0, 2
			}), diagnosis.HandOver, 1.8, diagnosis.SetArgument, diagnosis.Change{Argument: "batch_size", Value: "1024"}, "",
		},
		{
			"decoding ahead on a few of many processors", with(loop(4.4, 0.5, 2, 0.9, 0.6, 0, 0.4), func(m *diagnosis.Measurements) {
				m.Decoding, m.Delayed, m.Processors = 400*ms, 100*ms, 64
			}), diagnosis.HandOver, 1.8, diagnosis.SetArgument, diagnosis.Change{Argument: "batch_size", Value: "1024"}, "",
		},
		{
			"small batches that are dropped", with(loop(0.135, 0.046, 0, 0.05, 0.04, 0, 0), func(m *diagnosis.Measurements) { m.Dropped = true }),
			diagnosis.HandOver, 2.7, diagnosis.SetArgument, diagnosis.Change{Argument: "/batch/size", Value: "1024"},
			"In 100 batches the loop waited for data for 100 % of the time: 135 µs of 135 µs a batch.\n" +
				"Passing batches between threads bounds it, with 85 µs a batch; without it the loop would be 2.7 times as fast.\n" +
				"Set /batch/size=1024: passing a batch takes the same time for any number of rows.",
		},
		{
			"whole batches that are dropped", with(loop(10, 9, 0, 10, 9.8, 0, 0), func(m *diagnosis.Measurements) { m.Dropped, m.Gathered = true, 4*m.Gathered }),
			diagnosis.Gather, 10, diagnosis.SetArgument, diagnosis.Change{Argument: "/loading", Value: `"process"`}, "",
		},
		{
			"a slow disk", loop(10, 9, 0.1, 10, 9.8, 9, 0.1), diagnosis.Storage, 10, diagnosis.MoveFiles, none,
			"In 100 batches the loop waited for data for 91 % of the time: 9.1 ms of 10 ms a batch.\n" +
				"Reading the files bounds it, with 9.0 ms a batch; without it the loop would be 10 times as fast.\n" +
				"Copy the files to a faster disk, such as one of this machine: the storage delivers no more.",
		},
		{
			"a step that waits for the file in turn", loop(10, 5, 0.1, 10, 9.8, 9, 0.1), diagnosis.Storage, 2, diagnosis.MoveFiles, none, "",
		},
		{
			"rows of large arrays", loop(10, 9, 0.1, 10, 9.8, 0, 0), diagnosis.Gather, 10, diagnosis.Nothing, none,
			"In 100 batches the loop waited for data for 91 % of the time: 9.1 ms of 10 ms a batch.\n" +
				"Gathering rows bounds it, with 10 ms a batch; without it the loop would be 10 times as fast.\n" +
				"Nothing to change but the data: rows are copied at 102 MiB a second; smaller rows or narrower types take less time.",
		},
		{
			"small columns", with(loop(10, 9, 0.1, 10, 9.8, 0, 0), func(m *diagnosis.Measurements) { m.Rows = m.Bytes / 100 }),
			diagnosis.Gather, 10, diagnosis.CombineFields, none, "",
		},
		{
			"one small column", with(loop(10, 9, 0.1, 10, 9.8, 0, 0), func(m *diagnosis.Measurements) { m.Rows, m.Arrays, m.Combinable = m.Bytes/100, 1, 0 }),
			diagnosis.Gather, 10, diagnosis.Nothing, none, "",
		},
		{
			"many tiny rows", with(loop(10, 9, 0.1, 10, 4, 0, 0), func(m *diagnosis.Measurements) { m.Rows, m.Arrays, m.Combinable = m.Bytes/16, 1, 0 }),
			diagnosis.Gather, 10, diagnosis.Nothing, none,
			"In 100 batches the loop waited for data for 91 % of the time: 9.1 ms of 10 ms a batch.\n" +
				"Gathering rows bounds it, with 10 ms a batch; without it the loop would be 10 times as fast.\n" +
				"Nothing to change but the data: choosing records takes longer than copying their rows, so that fewer and larger rows take less time.",
		},
		{
			"whole batches", with(loop(10, 9, 0.1, 10, 9.8, 0, 0), func(m *diagnosis.Measurements) { m.Gathered *= 4 }),
			diagnosis.Gather, 10, diagnosis.SetArgument, diagnosis.Change{Argument: "loading", Value: `"process"`}, "",
		},
		{
			"many arrays", loop(2, 0.01, 1.5, 0.1, 0.1, 0, 0), diagnosis.HandOver, 4, diagnosis.SetArgument, diagnosis.Change{Argument: "batch_size", Value: "1024"},
			"In 100 batches the loop waited for data for 76 % of the time: 1.5 ms of 2.0 ms a batch.\n" +
				"The hand-over of batches bounds it, with 1.5 ms a batch; without it the loop would be 4.0 times as fast.\n" +
				"Set batch_size=1024, or combine fields of equal type and shape, which saves 1 array: a hand-over takes the same time for any number of rows.",
		},
		{
			"a step that takes most of the time beside many arrays", loop(16, 0.005, 0.956, 0.07, 0.05, 0, 0), diagnosis.Step, 16.7, diagnosis.SetArgument, diagnosis.Change{Argument: "batch_size", Value: "128"},
			"In 100 batches the loop waited for data for 6.0 % of the time: 961 µs of 16 ms a batch.\n" +
				"Your step bounds it, with 15 ms a batch; without it the loop would be 17 times as fast.\n" +
				"The hand-over of batches costs 6.0 % of the time. Set batch_size=128, or combine fields of equal type and shape, which saves 1 array: a hand-over takes the same time for any number of rows.",
		},
		{
			"a hand-over that takes nearly a fifth", loop(10, 0.1, 1.8, 0.1, 0.1, 0, 0), diagnosis.Step, 5.6, diagnosis.SetArgument, diagnosis.Change{Argument: "batch_size", Value: "512"}, "",
		},
		{
			"a hand-over that takes a fifth", loop(10, 0.1, 1.95, 0.1, 0.1, 0, 0), diagnosis.HandOver, 1.2, diagnosis.SetArgument, diagnosis.Change{Argument: "batch_size", Value: "512"}, "",
		},
		{
			"a step about as slow as a file", loop(10, 0.9, 0.1, 10, 9.8, 9, 0.1), diagnosis.Storage, 1.1, diagnosis.MoveFiles, none,
			"In 100 batches the loop waited for data for 10 % of the time: 1.0 ms of 10 ms a batch.\n" +
				"Reading the files bounds it, with 9.0 ms a batch; without it the loop would be 1.1 times as fast.\n" +
				"Copy the files to a faster disk, such as one of this machine: the storage delivers no more.",
		},
		{
			"a slow step without read-ahead", with(loop(10, 1.5, 0.1, 1.5, 1.5, 1.5, 0), func(m *diagnosis.Measurements) { m.Prefetch = 0 }),
			diagnosis.Step, 6.7, diagnosis.SetArgument, diagnosis.Change{Argument: "prefetch", Value: "2"},
			"In 100 batches the loop waited for data for 16 % of the time: 1.6 ms of 10 ms a batch.\n" +
				"Your step bounds it, with 8.4 ms a batch; without it the loop would be 6.7 times as fast.\n" +
				"Reading the files costs 15 % of the time. Set prefetch=2: with 0, a batch is built only when the loop asks for it.",
		},
		{
			"processes that wait little for others", with(loop(10, 0.1, 0.3, 0.7, 0.6, 0, 0), func(m *diagnosis.Measurements) { m.Peers = 100 * ms }),
			diagnosis.Step, 14.3, diagnosis.ReportJob, none,
			"In 100 batches the loop waited for data for 14 % of the time: 1.4 ms of 10 ms a batch.\n" +
				"Your step bounds it, with 8.6 ms a batch; without it the loop would be 14 times as fast.\n" +
				"Waiting for other processes costs 10 % of the time. Call loader.report(all_processes=True), which names the process that is late.",
		},
		{
			"a small dataset", with(loop(2, 0.01, 1.5, 0.1, 0.1, 0, 0), func(m *diagnosis.Measurements) { m.Records = 64 * 30 }),
			diagnosis.HandOver, 4, diagnosis.SetArgument, diagnosis.Change{Argument: "batch_size", Value: "128"}, "",
		},
		{
			"a dataset of a few batches", with(loop(2, 0.01, 1.5, 0.1, 0.1, 0, 0), func(m *diagnosis.Measurements) { m.Records = 128 }),
			diagnosis.HandOver, 4, diagnosis.CombineFields, none,
			"In 100 batches the loop waited for data for 76 % of the time: 1.5 ms of 2.0 ms a batch.\n" +
				"The hand-over of batches bounds it, with 1.5 ms a batch; without it the loop would be 4.0 times as fast.\n" +
				"Combine fields of equal type and shape, which saves 1 array: the time of a hand-over grows with the number of arrays and devices.",
		},
		{
			"a single array", with(loop(2, 0.01, 1.5, 0.1, 0.1, 0, 0), func(m *diagnosis.Measurements) { m.Arrays, m.Combinable = 1, 0 }),
			diagnosis.HandOver, 4, diagnosis.SetArgument, diagnosis.Change{Argument: "batch_size", Value: "1024"},
			"In 100 batches the loop waited for data for 76 % of the time: 1.5 ms of 2.0 ms a batch.\n" +
				"The hand-over of batches bounds it, with 1.5 ms a batch; without it the loop would be 4.0 times as fast.\n" +
				"Set batch_size=1024: a hand-over takes the same time for any number of rows.",
		},
		{
			"a single array of a few batches", with(loop(2, 0.01, 1.5, 0.1, 0.1, 0, 0), func(m *diagnosis.Measurements) { m.Arrays, m.Combinable, m.Records = 1, 0, 128 }),
			diagnosis.HandOver, 4, diagnosis.Nothing, none,
			"In 100 batches the loop waited for data for 76 % of the time: 1.5 ms of 2.0 ms a batch.\n" +
				"The hand-over of batches bounds it, with 1.5 ms a batch; without it the loop would be 4.0 times as fast.\n" +
				"Nothing to change: no arrays can be combined, and the dataset is too small for larger batches.",
		},
		{
			"no read-ahead beside a hand-over that cannot be shorter", with(loop(4, 0.3, 0.6, 0.3, 0.3, 0, 0), func(m *diagnosis.Measurements) { m.Combinable, m.Records, m.Prefetch = 0, 128, 0 }),
			diagnosis.Gather, 1.1, diagnosis.SetArgument, diagnosis.Change{Argument: "prefetch", Value: "2"}, "",
		},
		{
			"no batch is sent ahead", with(loop(2, 0.01, 1.5, 0.1, 0.1, 0, 0), func(m *diagnosis.Measurements) { m.Platform = "gpu" }),
			diagnosis.HandOver, 4, diagnosis.SetArgument, diagnosis.Change{Argument: "device_prefetch", Value: "1"}, "",
		},
		{
			"batches are sent ahead", with(loop(2, 0.01, 1.5, 0.1, 0.1, 0, 0), func(m *diagnosis.Measurements) { m.Platform, m.DevicePrefetch = "gpu", 1 }),
			diagnosis.HandOver, 4, diagnosis.SetArgument, diagnosis.Change{Argument: "batch_size", Value: "1024"}, "",
		},
		{
			"no read-ahead", with(loop(10, 4, 0.1, 4, 3.9, 3, 0), func(m *diagnosis.Measurements) { m.Prefetch = 0 }),
			diagnosis.Storage, 1.7, diagnosis.SetArgument, diagnosis.Change{Argument: "prefetch", Value: "2"},
			"In 100 batches the loop waited for data for 41 % of the time: 4.1 ms of 10 ms a batch.\n" +
				"Reading the files bounds it, with 3.0 ms a batch; without it the loop would be 1.7 times as fast.\n" +
				"Set prefetch=2: with 0, a batch is built only when the loop asks for it.",
		},
		{
			"no read-ahead on a busy machine", with(loop(10, 4, 0.1, 1, 0.9, 0, 0), func(m *diagnosis.Measurements) { m.Prefetch = 0 }),
			diagnosis.Gather, 1.7, diagnosis.SetArgument, diagnosis.Change{Argument: "prefetch", Value: "2"}, "",
		},
		{
			"some batches take long", loop(10, 3, 0.1, 4, 3.9, 3, 0), diagnosis.Storage, 1.4, diagnosis.SetArgument, diagnosis.Change{Argument: "prefetch", Value: "4"}, "",
		},
		{
			"tiny batches", loop(0.02, 0.017, 0.001, 0.004, 0.003, 0, 0), diagnosis.HandOver, 3.3, diagnosis.SetArgument, diagnosis.Change{Argument: "batch_size", Value: "1024"},
			"In 100 batches the loop waited for data for 90 % of the time: 18 µs of 20 µs a batch.\n" +
				"The hand-over of batches bounds it, with 14 µs a batch; without it the loop would be 3.3 times as fast.\n" +
				"Set batch_size=1024, or combine fields of equal type and shape, which saves 1 array: a hand-over takes the same time for any number of rows.",
		},
		{
			"tiny batches on a busy machine", loop(2.7, 0.7, 0.1, 0.007, 0.005, 0, 0), diagnosis.Gather, 1.4, diagnosis.SetArgument, diagnosis.Change{Argument: "prefetch", Value: "4"},
			"In 100 batches the loop waited for data for 30 % of the time: 800 µs of 2.7 ms a batch.\n" +
				"Gathering rows bounds it, with 700 µs a batch; without it the loop would be 1.4 times as fast.\n" +
				"Set prefetch=4: a batch is built in 7.0 µs, but some come late. On a busy machine, the threads that build them wait for a CPU.",
		},
		{
			"no memory", with(loop(10, 3, 0.1, 4, 3.9, 3, 0), func(m *diagnosis.Measurements) { m.Bounded = true }),
			diagnosis.Storage, 1.4, diagnosis.SetArgument, diagnosis.Change{Argument: "max_host_bytes", Value: "5242880"}, "",
		},
		{
			"a forced synchronization of several CPU devices", with(loop(10, 0.1, 0.3, 0.7, 0.6, 0, 0), func(m *diagnosis.Measurements) { m.Samples = synced }),
			diagnosis.Synchronization, 1.3, diagnosis.Nothing, none,
			"In 100 batches the loop waited for data for 4.0 % of the time: 400 µs of 10 ms a batch.\n" +
				"A forced synchronization bounds it, with 7.7 ms a batch; without it the loop could be up to 1.3 times as fast.\n" +
				"Nothing to change on several CPU devices, because their steps can wait for each other forever if they overlap. On others, read results such as float(loss) only every hundred steps.",
		},
		{
			"a forced synchronization", with(loop(10, 0.1, 0.3, 0.7, 0.6, 0, 0), func(m *diagnosis.Measurements) { m.Samples, m.Devices = synced, 1 }),
			diagnosis.Synchronization, 1.3, diagnosis.ReadResultsLater, none,
			"In 100 batches the loop waited for data for 4.0 % of the time: 400 µs of 10 ms a batch.\n" +
				"A forced synchronization bounds it, with 7.7 ms a batch; without it the loop could be up to 1.3 times as fast.\n" +
				"If the step reads results such as float(loss), read them only every hundred steps, or read the results of the step before: then the devices compute while the program prepares the next step.",
		},
		{
			"a forced synchronization of a program that also sleeps", with(loop(10, 0.1, 0.3, 0.7, 0.6, 0, 0), func(m *diagnosis.Measurements) {
				m.Samples, m.Devices = synced, 1
				m.Samples.Busy = 5
			}),
			diagnosis.Synchronization, 1.3, diagnosis.ReadResultsLater, none,
			"In 100 batches the loop waited for data for 4.0 % of the time: 400 µs of 10 ms a batch.\n" +
				"A forced synchronization bounds it, with 4.8 ms a batch; without it the loop could be up to 1.3 times as fast.\n" +
				"If the step reads results such as float(loss), read them only every hundred steps, or read the results of the step before: then the devices compute while the program prepares the next step.",
		},
		{
			"a slow input beside a forced synchronization", with(loop(10, 6, 0.1, 10, 9.8, 0.5, 9), func(m *diagnosis.Measurements) { m.Samples = synced }),
			diagnosis.Decode, 2.5, diagnosis.WriteUncompressed, none, "",
		},
		{
			"an uneven input beside a forced synchronization", with(loop(10, 3, 0.1, 3.5, 3.4, 0, 0), func(m *diagnosis.Measurements) { m.Samples = synced }),
			diagnosis.Gather, 1.4, diagnosis.SetArgument, diagnosis.Change{Argument: "prefetch", Value: "4"}, "",
		},
		{
			"devices that work at the end of a step", with(loop(10, 0.1, 0.3, 0.7, 0.6, 0, 0), func(m *diagnosis.Measurements) { m.Samples = synced; m.Samples.Idle = 7 }),
			diagnosis.Step, 14.3, diagnosis.Nothing, none, "",
		},
		{
			"a slow program", with(loop(10, 0.1, 0.3, 0.7, 0.6, 0, 0), func(m *diagnosis.Measurements) { m.Samples = synced; m.Samples.Busy = 1 }),
			diagnosis.Step, 14.3, diagnosis.Nothing, none, "",
		},
		{
			"devices that never run dry", with(loop(10, 3, 0.1, 4, 3.9, 3, 0), func(m *diagnosis.Measurements) { m.Samples = ahead }),
			diagnosis.Step, 2.5, diagnosis.Nothing, none,
			"In 100 batches the loop waited for data for 31 % of the time: 3.1 ms of 10 ms a batch.\n" +
				"Your step bounds it, with 6.9 ms a batch; without it the loop would be 2.5 times as fast.\n" +
				"Nothing to change: the devices had work whenever a batch was delivered.",
		},
		{
			"other processes", with(loop(10, 0.1, 0.3, 0.7, 0.6, 0, 0), func(m *diagnosis.Measurements) { m.Peers = 500 * ms }),
			diagnosis.Process, 2, diagnosis.ReportJob, none,
			"In 100 batches the loop waited for data for 54 % of the time: 5.4 ms of 10 ms a batch.\n" +
				"Waiting for other processes bounds it, with 5.0 ms a batch; without it the loop would be 2.0 times as fast.\n" +
				"Call loader.report(all_processes=True), which names the process that is late.",
		},
		{
			"a program as slow as its devices, on a busy machine", with(loop(10, 0.1, 0.1, 0.7, 0.6, 0, 0), func(m *diagnosis.Measurements) {
				m.Samples = synced
				m.Samples.Busy, m.Samples.CPU = 9, 60*ms
			}),
			diagnosis.Step, 14.3, diagnosis.Nothing, none, "",
		},
		{
			"a program that sleeps after its devices", with(loop(10, 0.1, 0.1, 0.7, 0.6, 0, 0), func(m *diagnosis.Measurements) {
				m.Samples = synced
				m.Samples.Busy, m.Samples.CPU = 6, ms
			}),
			diagnosis.Step, 14.3, diagnosis.Nothing, none, "",
		},
		{
			"a synchronization that costs nothing", with(loop(10, 0.1, 0.1, 0.7, 0.6, 0, 0), func(m *diagnosis.Measurements) { m.Samples = synced; m.Samples.CPU = 0 }),
			diagnosis.Step, 14.3, diagnosis.Nothing, none, "",
		},
		{
			"too few batches", diagnosis.Measurements{Batches: 4, Wall: ms}, diagnosis.Unknown, 1, diagnosis.Nothing, none,
			"After 4 batches beside the first two there is no verdict yet.\nIt needs 5.\nAsk again later.",
		},
		{
			"nothing", diagnosis.Measurements{}, diagnosis.Unknown, 1, diagnosis.Nothing, none,
			"After 0 batches beside the first two there is no verdict yet.\nIt needs 5.\nAsk after a loop over the loader; passes of one_epoch are not measured.",
		},
		{"no input at all", diagnosis.Measurements{Batches: 10, Wall: ms}, diagnosis.Step, 1e6, diagnosis.Nothing, none, ""},
	} {
		r := diagnosis.Diagnose(c.given)
		if r.Bound != c.bound || r.Action != c.action || r.Change != c.change || r.Faster < c.faster-0.06 || r.Faster > c.faster+0.06 {
			t.Errorf("%s: got %s, %.2f, %s %v, want %s, %.2f, %s %v", c.name, r.Bound, r.Faster, r.Action, r.Change, c.bound, c.faster, c.action, c.change)
		}
		if text := strings.Join(r.Sentences, "\n"); c.text != "" && text != c.text {
			t.Errorf("%s:\ngot\n%s\nwant\n%s", c.name, text, c.text)
		}
	}
}

// The first three rows of the table add up to the wall time, also if clocks disagree.
func TestParts(t *testing.T) {
	for _, m := range []diagnosis.Measurements{loop(10, 6, 0.1, 10, 9.8, 0.5, 9), loop(1, 2, 3, 4, 5, 6, 7), {Wall: -1}} {
		r := diagnosis.Diagnose(m)
		sum := r.Parts[0].Time + r.Parts[1].Time + r.Parts[2].Time
		if wall := max(m.Wall/time.Duration(max(m.Batches, 1)), 0); sum != wall {
			t.Errorf("%v of %v in %v", sum, wall, r.Parts)
		}
		for _, p := range r.Parts {
			if p.Time < 0 || p.Share < 0 || p.Share > 1 {
				t.Errorf("part %v", p)
			}
		}
	}
}
