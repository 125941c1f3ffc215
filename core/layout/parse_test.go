package layout

import "testing"

const digits = `{"meshfeed": 1,
 "mesh": {"axes": [["data", 4], ["model", 2]], "processes": 4},
 "arrays": {"image": {"shape": ["B", 8, 8], "dtype": "float32", "spec": ["data", null, "model"]},
            "label": {"shape": ["B"], "dtype": "int32", "spec": ["data"]}},
 "batch": {"size": 256, "remainder": "drop"},
 "dataset": {"records": 1797}, "budget": {"device_bytes": 17179869184, "host_bytes": 8589934592}}`

func TestCanonical(t *testing.T) {
	d, err := Parse([]byte(digits))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"meshfeed":1,"mesh":{"axes":[["data",4],["model",2]],"processes":4},"arrays":{"image":{"shape":["B",8,8],"dtype":"float32","spec":["data",null,"model"]},` +
		`"label":{"shape":["B"],"dtype":"int32","spec":["data"]}},"batch":{"size":256},"dataset":{"records":1797},"budget":{"device_bytes":17179869184,"host_bytes":8589934592}}`
	if got := string(d.Canonical()); got != want {
		t.Errorf("canonical text is\n%s\nwant\n%s", got, want)
	}
}

// A caller's text may be part of a larger one, and what follows is not ours.
func TestParseLeavesWhatFollows(t *testing.T) {
	for n := range len(digits) {
		text := []byte(digits)
		_, _ = Parse(text[:n])
		if string(text) != digits {
			t.Fatalf("parsing %d bytes changed what follows them: %q", n, text[n:])
		}
	}
}

// A large mesh may list every device: what a number costs may not depend on the
// length of the text, and no path is made for what is right.
func TestParseAllocatesByLists(t *testing.T) {
	text := deviceByDevice(4096)
	if n := testing.AllocsPerRun(3, func() { _, _ = Parse(text) }); n > 1000 {
		t.Errorf("4096 devices took %v allocations", n)
	}
}

func TestTotals(t *testing.T) {
	l := mustNew(t, digits)
	want := Totals{BatchBytes: 66560, ReadBytes: 66560, DeviceBytes: 8448, HostBytes: 49920, StepsPerEpoch: 7, RemainderRecords: 5}
	if l.Totals() != want || len(l.Problems()) != 0 {
		t.Errorf("totals %+v, problems %v", l.Totals(), l.Problems())
	}
	if p := l.Process(1); len(p.Blocks) != 3 || len(p.Rows) != 1 || p.Rows[0] != [2]int{64, 128} {
		t.Errorf("process 1 is %+v", p)
	}
}
