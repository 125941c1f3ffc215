package document_test

import (
	"testing"

	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/tests/documents"
)

func TestCanonical(t *testing.T) {
	d, err := document.Parse([]byte(documents.Digits))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"meshfeed":1,"mesh":{"axes":[["data",4],["model",2]],"processes":4},"arrays":{"image":{"shape":["B",8,8],"dtype":"float32","spec":["data",null,"model"]},` +
		`"label":{"shape":["B"],"dtype":"int32","spec":["data"]}},"batch":{"size":256},"dataset":{"records":1797},"budget":{"device_bytes":17179869184,"host_bytes":8589934592}}`
	if got := string(document.Canonical(d)); got != want {
		t.Errorf("canonical text is\n%s\nwant\n%s", got, want)
	}
}

// The text may be part of a larger one. Parse must not change what follows it.
func TestParseLeavesWhatFollows(t *testing.T) {
	for n := range len(documents.Digits) {
		text := []byte(documents.Digits)
		_, _ = document.Parse(text[:n])
		if string(text) != documents.Digits {
			t.Fatalf("parsing %d bytes changed what follows them: %q", n, text[n:])
		}
	}
}

// deviceByDevice returns the text of a document that lists every device, in an
// order that Canonical cannot shorten.
func deviceByDevice(devices int) []byte {
	d := documents.Large(devices)
	for i := range devices {
		last := devices - 1 - i
		d.Mesh.Devices = append(d.Mesh.Devices, mesh.Device{Process: last / 8, ID: last})
	}
	d.Mesh.Processes = 0
	return document.Canonical(d)
}

// A large mesh may list every device. Parse must not allocate per device: it
// makes paths only for errors.
func TestParseAllocatesByLists(t *testing.T) {
	text := deviceByDevice(4096)
	if n := testing.AllocsPerRun(3, func() { _, _ = document.Parse(text) }); n > 1000 {
		t.Errorf("4096 devices took %v allocations", n)
	}
}
