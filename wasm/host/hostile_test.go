package host_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/status"
)

// repeat writes one part n times with its number, separated by commas.
func repeat(n int, format string) string {
	var s strings.Builder
	for i := range n {
		if i > 0 {
			s.WriteByte(',')
		}
		s.WriteString(strings.ReplaceAll(format, "#", fmt.Sprint(i)))
	}
	return s.String()
}

// hostile has documents that try to use up time or memory, with the beginning of
// the error's message, or "" if the document is only large.
var hostile = map[string]struct{ text, message string }{
	"deep":            {`{"meshfeed":1,"mesh":` + strings.Repeat("[", 1<<20), "/mesh"},
	"deep objects":    {strings.Repeat(`{"a":`, 1<<20), "/a/a"},
	"billion devices": {`{"meshfeed":1,"mesh":{"axes":[["a",1000000000]]},"arrays":{},"batch":{"size":1}}`, `/mesh/axes/0/1: axis "a" of size 1000000000`},
	"huge number":     {`{"meshfeed":1,"mesh":{"axes":[["a",` + strings.Repeat("9", 1<<20) + `]]}}`, "/mesh/axes/0/1: the number is outside"},
	"broken UTF-8":    {"{\"meshfeed\":1,\"mesh\":{\"axes\":[[\"\xff\",2]]}}", "/mesh/axes/0/0: the byte 0xff is not UTF-8"},
	"duplicate keys":  {`{"meshfeed":1,"meshfeed":1}`, `/meshfeed: key "meshfeed" occurs twice`},
	"cut":             {`{"meshfeed":1,"mesh":{"axes":[["a"`, "/mesh/axes/0: expected"},
	"too long":        {strings.Repeat(" ", 9<<20), "the document has 9437184 bytes"},
	"many keys":       {"{" + repeat(500_000, `"k#":1`) + "}", "/k0: "},
	"many arrays of high rank": {`{"meshfeed":1,"mesh":{"axes":[["a",1024]],"processes":1024},"arrays":{` +
		repeat(200, `"x#":{"shape":["B"`+strings.Repeat(",1", 31)+`],"dtype":"int8","spec":["a"]}`) + `},"batch":{"size":1024}}`, ""},
}

// laborious has documents within all limits that take seconds. TestLargestMesh has others.
var laborious = map[string]string{
	"listed devices": `{"meshfeed":1,"mesh":{"axes":[["a",524288]],"devices":[` + repeat(1<<19, "[0,#]") +
		`]},"arrays":{"x":{"shape":["B"],"dtype":"int8","spec":["a"]}},"batch":{"size":524288}}`,
	"many ranges": `{"meshfeed":1,"mesh":{"axes":[["a",2],["b",1024]],"processes":2},"arrays":{"x":{"shape":["B0","B1","B2"],"dtype":"int8","spec":[null,"a","b"]}},` +
		`"batch":{"size":[2048,2,1024]}}`,
}

// The error of a laborious document, if any, is ResourceExhausted.
func TestLaboriousDocuments(t *testing.T) {
	if os.Getenv("MESHFEED_DEEP") == "" {
		t.Skip("takes a minute: set MESHFEED_DEEP=1")
	}
	for name, text := range laborious {
		reply, err := validator.Describe(t.Context(), []byte(text))
		if err == nil && !strings.HasSuffix(string(reply), `,"error":null}`) || err != nil && status.CodeOf(err) != status.ResourceExhausted {
			t.Errorf("%s: %.100s, %v", name, reply, err)
		}
	}
}

// Every hostile document gets a reply within the memory of an instance.
func TestHostileDocuments(t *testing.T) {
	for name, c := range hostile {
		t.Run(name, func(t *testing.T) {
			reply, err := validator.Describe(context.Background(), []byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			var r struct {
				Document *string
				Error    *struct{ Code, Message string }
			}
			if err := json.Unmarshal(reply, &r); err != nil {
				t.Fatal(err)
			}
			switch {
			case c.message == "" && (r.Error != nil || r.Document == nil):
				t.Errorf("got %v", r.Error)
			case c.message != "" && (r.Error == nil || !strings.HasPrefix(r.Error.Message, c.message) || r.Error.Code != "InvalidArgument"):
				t.Errorf("got %+v, want %s", r.Error, c.message)
			}
		})
	}
}

func TestHostileFiles(t *testing.T) {
	huge := append(binary.LittleEndian.AppendUint32(make([]byte, 64<<10), 1<<24-100), "PAR1"...)
	reply, err := validator.Schema(context.Background(), huge, 1<<40)
	if want := `{"format":"parquet","fields":[],"rows":null,"need":16777124,"error":null}`; err != nil || string(reply) != want {
		t.Errorf("got %s, %v", reply, err)
	}
	reply, err = validator.Schema(context.Background(), make([]byte, 16<<20), 1<<40)
	if want := "is too large to be read whole"; err != nil || !strings.Contains(string(reply), want) {
		t.Errorf("got %s, %v", reply, err)
	}
	_, err = validator.Schema(context.Background(), make([]byte, 16<<20+1), 1<<40)
	if want := "host: the module takes no input of 16777217 bytes"; err == nil || err.Error() != want || status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("got %v", err)
	}
}
