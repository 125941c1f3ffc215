package document_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/diagnosis"
	"github.com/meshfeed/meshfeed/core/diagnosis/document"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/golden"
	"github.com/meshfeed/meshfeed/tests/reports"
)

const decoding = `"batches":400,"wall_ns":4000000000,"wait_ns":2400000000,"hand_over_ns":40000000,"build_ns":4000000000,"gather_ns":3900000000,"storage_ns":200000000,"decode_ns":3500000000,"prefetch":2`

const stepping = `"samples":{"inside":100,"busy":90},"batches":1000,"wall_ns":4000000000,"wait_ns":4000000,"hand_over_ns":40000000,"build_ns":400000000,"gather_ns":390000000,"prefetch":2`

const single = `{"meshfeed":1,"processes":[{` + decoding + `}]}`

const job = `{"meshfeed":1,"processes":[{"process":0,` + stepping + `},{"process":1,"age_ns":2500000000,` + decoding + `}],"silent":[2]}`

func diagnose(t *testing.T, text string) *diagnosis.Report {
	t.Helper()
	r, err := document.Diagnose([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestSchema compares the schema with its file. The flag -rewrite writes the file.
func TestSchema(t *testing.T) {
	golden.CompareJSON(t, "measurements.schema.json", []byte(document.Schema()))
}

func TestText(t *testing.T) {
	const want = `Process 1 is late: in 400 batches the loop waited for data for 61 % of the time: 6.1 ms of 10 ms a
  batch.
Decompressing bounds it, with 8.8 ms a batch; without it the loop would be 2.5 times as fast. The
  other processes wait for it.
Write the files without compression: meshfeed convert FILE… FOLDER.
Process 2 has not published any measurements.

part          a batch of the time
wait           6.0 ms        60 %  for a batch that was not ready
hand-over      100 µs       1.0 %  making arrays of a batch
step           3.9 ms        39 %  your program between two batches
build           10 ms       100 %  ahead, on other threads:
  storage      500 µs       5.0 %  reading files
  decode       8.8 ms        88 %  decompressing
  gather       500 µs       5.0 %  copying rows
  other        250 µs       2.5 %  choosing records, memory, checks

process    batches     waited       step  devices idle  bound           measured
      0      1,000      1.1 %     4.0 ms        396 µs  step            now
      1        400       61 %     3.9 ms       unknown  decode          2.5 s ago
`
	if got := document.Text(diagnose(t, job)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := document.Text(diagnose(t, single)); strings.Contains(got, "process ") || !strings.HasPrefix(got, "In 400 batches") {
		t.Errorf("a single process:\n%s", got)
	}
}

func TestReport(t *testing.T) {
	const parts = `"parts":[{"name":"wait","ns":6000000,"share":0.6},{"name":"hand-over","ns":100000,"share":0.01},{"name":"step","ns":3900000,"share":0.39},{"name":"build","ns":10000000,"share":1},` +
		`{"name":"storage","ns":500000,"share":0.05},{"name":"decode","ns":8750000,"share":0.875},{"name":"gather","ns":500000,"share":0.05},{"name":"other","ns":250000,"share":0.025}]`
	const sentences = `"sentences":["In 400 batches the loop waited for data for 61 % of the time: 6.1 ms of 10 ms a batch.",` +
		`"Decompressing bounds it, with 8.8 ms a batch; without it the loop would be 2.5 times as fast.",` +
		`"Write the files without compression: meshfeed convert FILE… FOLDER."]`
	const want = `{"meshfeed":1,"batches":400,"waited":0.61,"bound":"decode","process":null,"cause":null,"faster":2.5,"action":"write-uncompressed","change":null,` +
		sentences + `,` + parts + `,"samples":{"steps":0,"idle":0,"dry":0,"inside":0,"busy":0,"step_ns":0,"cpu_ns":0},"processes":[],"silent":[],"windows":null}`
	if got := string(document.Report(diagnose(t, single))); got != want || !json.Valid([]byte(got)) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	got := string(document.Report(diagnose(t, job)))
	for _, want := range []string{
		`"bound":"process","process":1,"cause":"decode","faster":2.5,"action":"write-uncompressed","change":null`,
		`"processes":[{"process":0,"batches":1000,"waited":0.011,"step_ns":3956000,"idle_ns":395600,"bound":"step","age_ns":0},{"process":1,"batches":400,"waited":0.61,"step_ns":3900000,"idle_ns":null,"bound":"decode","age_ns":2500000000}],"silent":[2],"windows":null}`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nis not in\n%s", want, got)
		}
	}
	const unread = `{"meshfeed":1,"processes":[{"batches":100,"wall_ns":1000000000,"wait_ns":400000000,"build_ns":400000000,"gather_ns":400000000,"prefetch":3}]}`
	if got := string(document.Report(diagnose(t, unread))); !strings.Contains(got, `"action":"set-argument","change":{"argument":"prefetch","value":6}`) {
		t.Errorf("got %s", got)
	}
}

// TestWindows: an order with windows is described after all other sentences, and its
// numbers are in the report.
func TestWindows(t *testing.T) {
	const windows = `"windows":{"blocks":800,"windows":7,"window":115,"records":29440,"bytes":30146560,"variance_percent":125}`
	const sentence = "The order shuffles in windows: an epoch has 7 windows of at most 115 of the 800 blocks, and a window has at most 29,440 records of 28.8 MiB; " +
		"the variance of a batch's mean is at most 1.25 times the variance of independent records."
	for _, text := range []string{single, job} {
		r := diagnose(t, strings.Replace(text, `"batches"`, windows+`,"batches"`, 1))
		if got := r.Sentences[len(r.Sentences)-1]; got != sentence {
			t.Errorf("got  %s\nwant %s", got, sentence)
		}
		if got := string(document.Report(r)); !strings.HasSuffix(got, windows+"}") {
			t.Errorf("got %s", got)
		}
	}
	_, err := document.Diagnose([]byte(`{"meshfeed":1,"processes":[{"windows":{"blocks":1}}]}`))
	if want := `measurements: /processes/0/windows: windows needs the key "windows"`; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// A table lists at most 32 processes that are not late, and the late process.
func TestManyProcesses(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"meshfeed":1,"processes":[`)
	for i := range 100 {
		fmt.Fprintf(&b, `{"process":%d,%s},`, i, stepping)
	}
	b.WriteString(`{"process":100,` + decoding + `}]}`)
	text := document.Text(diagnose(t, b.String()))
	if !strings.HasSuffix(text, "\n    100        400       61 %     3.9 ms       unknown  decode          now\n… and 68 processes\n") {
		t.Errorf("got\n%s", text)
	}
}

const known = `process, batches, age_ns, wall_ns, wait_ns, peers_ns, hand_over_ns, build_ns, gather_ns, storage_ns, decode_ns, map_ns, map_locked, bad, stall_ns, decoding_ns, delayed_ns, processors, rows, bytes, gathered_bytes, arrays, combinable, devices, platform, batch_size, records, prefetch, device_prefetch, bounded, samples, windows`

func TestRefused(t *testing.T) {
	for _, c := range []struct{ text, path, message string }{
		{`{"meshfeed":1}`, "", `measurements: a measurements document needs the key "processes"`},
		{`{"meshfeed":2,"processes":[]}`, "/meshfeed", `measurements: /meshfeed: the document has version 2, but this release reads version 1`},
		{`{"meshfeed":1,"processes":[{"wait":1}]}`, "/processes/0/wait", `measurements: /processes/0/wait: "wait" is not a key; the keys here are ` + known},
		{`{"meshfeed":1,"processes":[{"wait_ns":-1}]}`, "/processes/0/wait_ns", `measurements: /processes/0/wait_ns: expected a number of nanoseconds from 0 to 9007199254740992, but found -1`},
		{`{"meshfeed":1,"processes":[{"samples":{"steps":1.5}}]}`, "/processes/0/samples/steps", `measurements: /processes/0/samples/steps: the number is not written as an integer (line 1, byte 48)`},
		{`{"meshfeed":1,"processes":[{"bounded":1}]}`, "/processes/0/bounded", `measurements: /processes/0/bounded: expected whether max_host_bytes bounds what is read ahead, but found a number`},
		{`{"meshfeed":1,"processes":[],"silent":[-1]}`, "/silent/0", `measurements: /silent/0: expected a process from 0 to 2147483647, but found -1`},
	} {
		_, err := document.Diagnose([]byte(c.text))
		e, _ := errors.AsType[*status.Error](err)
		if e == nil || e.Error() != c.message || e.Attr("path") != c.path || e.Code != status.InvalidArgument {
			t.Errorf("%s\n got %v\nwant %s", c.text, err, c.message)
		}
	}
}

// FuzzDiagnose checks that no document stops the program: it is refused with a path, or
// diagnosed, and its report is JSON.
func FuzzDiagnose(f *testing.F) {
	f.Add([]byte(single))
	f.Add([]byte(job))
	f.Add([]byte(`{"meshfeed":1,"processes":[{"batches":9,"wall_ns":900,"samples":{"steps":9,"idle":9,"dry":9,"inside":9,"busy":9,"step_ns":9,"cpu_ns":1},"platform":"gpu","bounded":true}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := document.Diagnose(text)
		if err != nil {
			reports.Refused(t, err)
			return
		}
		reports.Check(t, document.Report(r), document.Text(r))
	})
}
