package certificate

import (
	"encoding/binary"
	"encoding/hex"
	"slices"

	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/jsontext"
)

const (
	version      = 2
	maxTextBytes = 1 << 20
)

// form holds the limits of a text that Parse reads, and makes its errors.
var form = jsontext.Form{MaxDepth: 8, MaxString: 1024, Fail: func(pointer, message string) *status.Error {
	if pointer != "" {
		message = pointer + ": " + message
	}
	return wrong("%s", message)
}}

func wrong(format string, args ...any) *status.Error {
	return fail(status.InvalidArgument, "this is not a certificate: "+format, args...).WithHint("pass on what a loader gave, unchanged")
}

// JSON returns the certificate as one line of JSON. Equal certificates have the
// same bytes:
//
//	{"meshfeed":2,"order":"shuffle.1","dataset":"…","records":1797,"seed":0,"runs":[
//	{"mesh":[[0,4]],"processes":[[0,4]],"parts":1,"delivered":[[0,3,0,1792]],"dropped":[[0,3,1792,1797]],"skipped":[],"rows":5376,"digest":"…"}]}
//
// Processes are ranges [start, stop). Positions are the fields of a Span: [epoch,
// epochs, first, last]. The error is ResourceExhausted for a text that Parse refuses.
func (c Certificate) JSON() ([]byte, error) {
	w := &jsontext.Writer{}
	w.Open('{')
	w.Key("meshfeed").Int(version)
	w.Key("order").String(c.Order)
	w.Key("dataset").String(c.Dataset)
	w.Key("records").Int(c.Records)
	w.Key("seed").Int(c.Seed)
	w.Key("runs").Open('[')
	for _, r := range c.runs {
		w.Open('{')
		writeProcesses(w.Key("mesh"), r.Mesh)
		writeProcesses(w.Key("processes"), r.Processes)
		w.Key("parts").Int(r.Parts)
		writePositions(w, r.Delivered, r.Dropped, r.Skipped)
		w.Key("rows").Int(r.Rows)
		w.Key("digest").String(r.Digest.String())
		w.Close('}')
	}
	w.Close(']')
	if len(c.Commits) > 0 {
		w.Key("commits").Strings(c.Commits...)
	}
	w.Close('}')
	if n := len(w.Text); n > maxTextBytes {
		return nil, fail(status.ResourceExhausted, "the certificate takes %d bytes, but may take %d", n, maxTextBytes).
			WithHint("keep the certificates of fewer runs in one")
	}
	return w.Text, nil
}

func writeProcesses(w *jsontext.Writer, p Processes) {
	w.Open('[')
	for _, r := range p {
		w.Ints(int(r[0]), int(r[1]))
	}
	w.Close(']')
}

// writePositions writes the delivered, dropped and skipped positions of a run.
func writePositions(w *jsontext.Writer, delivered, dropped, skipped []Span) {
	writeSpans(w.Key("delivered"), delivered)
	writeSpans(w.Key("dropped"), dropped)
	writeSpans(w.Key("skipped"), skipped)
}

func writeSpans(w *jsontext.Writer, spans []Span) {
	w.Open('[')
	for _, s := range spans {
		w.Ints(int(s.Epoch), int(s.Epochs), int(s.First), int(s.Last))
	}
	w.Close(']')
}

// Parse reads what JSON returned, with keys in any order. It is as strict as
// [jsontext.Reader], and refuses runs that are not in canonical form.
func Parse(data []byte) (Certificate, error) {
	if len(data) > maxTextBytes {
		return Certificate{}, wrong("the text has %d bytes, but may have %d", len(data), maxTextBytes)
	}
	r, err := jsontext.NewReader(data, form)
	if err != nil {
		return Certificate{}, err
	}
	if v, _ := jsontext.Value(data).Trim().Get("meshfeed").Int(); v > 0 && v != version { // first, because other versions have other keys
		return Certificate{}, fail(status.Incompatible, "the certificate is of version %d, but this release reads version %d", v, version).
			WithHint("read it with the release that wrote it")
	}
	p := parser{Reader: r}
	if err := p.Members("a certificate", len(keys)-1, keys, p.member); err != nil {
		return Certificate{}, err
	}
	pieces := 0
	for i := range p.runs {
		if err := p.runs[i].check(p.sequence.Records); err != nil {
			return Certificate{}, err
		}
		if pieces += p.runs[i].pieces(); pieces > maxPieces {
			return Certificate{}, wrong("its runs have more than %d pieces", maxPieces)
		}
	}
	c, err := New(p.sequence, p.runs)
	if err == nil && slices.CompareFunc(c.runs, p.runs, Run.compare) != 0 {
		return Certificate{}, wrong("the runs are not in canonical form")
	}
	c.Commits = p.commits
	return c, err
}

var (
	keys    = []string{"meshfeed", "order", "dataset", "records", "seed", "runs", "commits"}
	runKeys = []string{"mesh", "processes", "parts", "delivered", "dropped", "skipped", "rows", "digest"}
)

// parser reads the text of a certificate.
type parser struct {
	*jsontext.Reader
	sequence Sequence
	runs     []Run
	commits  []string
}

func (p *parser) member(key string) (err error) {
	s := &p.sequence
	switch key {
	case "meshfeed":
		_, err = p.Integer("the version", version, version)
	case "order":
		s.Order, err = p.Text("the name of an order")
	case "dataset":
		if s.Dataset, err = p.Text("a fingerprint"); err == nil {
			_, err = p.hexadecimal(s.Dataset)
		}
	case "records":
		s.Records, err = p.Integer("a number of records", 0, sampler.MaxRecords)
	case "seed":
		s.Seed, err = p.Integer("a seed", -sampler.MaxSeed, sampler.MaxSeed)
	case "runs":
		err = p.List("a list of runs", maxPieces, func(int) error {
			r := Run{}
			err := p.Members("a run", len(runKeys), runKeys, func(key string) error { return p.run(&r, key) })
			p.runs = append(p.runs, r)
			return err
		})
	case "commits":
		err = p.List("names with commits", maxPieces, func(int) error {
			name, err := p.Text("a name with a commit")
			p.commits = append(p.commits, name)
			return err
		})
	}
	return err
}

func (p *parser) run(r *Run, key string) (err error) {
	switch key {
	case "mesh":
		r.Mesh, err = p.processes()
	case "processes":
		r.Processes, err = p.processes()
	case "parts":
		r.Parts, err = p.Integer("a number of parts", 0, maxParts)
	case "delivered":
		r.Delivered, err = p.spans()
	case "dropped":
		r.Dropped, err = p.spans()
	case "skipped":
		r.Skipped, err = p.spans()
	case "rows":
		r.Rows, err = p.Integer("a number of rows", 0, maxCount)
	case "digest":
		var text string
		var sum []byte
		if text, err = p.Text("a digest"); err == nil {
			sum, err = p.hexadecimal(text)
		}
		if err == nil {
			r.Digest = Digest{binary.BigEndian.Uint64(sum), binary.BigEndian.Uint64(sum[8:])}
		}
	}
	return err
}

// hexadecimal decodes 32 hexadecimal digits.
func (p *parser) hexadecimal(text string) ([]byte, error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != 16 {
		return nil, p.Fail("%q must have 32 hexadecimal digits", text)
	}
	return b, nil
}

func (p *parser) processes() (all Processes, err error) {
	err = p.List("ranges of processes", maxPieces, func(int) error {
		r := [2]int64{}
		err := p.Tuple("a range as [start, stop]", 2, func(i int) (err error) {
			r[i], err = p.Integer("the number of a process", 0, maxCount)
			return err
		})
		all = append(all, r)
		return err
	})
	if err == nil && (len(all) == 0 || !all.valid()) {
		return nil, p.Fail("%v are not ascending ranges of numbers", [][2]int64(all))
	}
	return all, err
}

func (p *parser) spans() (all []Span, err error) {
	err = p.List("pieces of epochs", maxPieces, func(int) error {
		v := [4]int64{}
		err := p.Tuple("a piece as [epoch, epochs, first, last]", 4, func(i int) (err error) {
			v[i], err = p.Integer("an integer", 0, maxCount)
			return err
		})
		all = append(all, Span{v[0], v[1], v[2], v[3]})
		return err
	})
	return all, err
}

// check checks the spans of a run that was parsed.
func (r *Run) check(records int64) error {
	for _, spans := range [][]Span{r.Delivered, r.Dropped, r.Skipped} {
		for _, s := range spans {
			if s.Epochs < 1 || s.Last <= s.First || s.Last > records {
				return wrong("piece [%d %d %d %d] is not within epochs of %d records", s.Epoch, s.Epochs, s.First, s.Last, records)
			}
		}
		if !canonical(spans) {
			return wrong("the pieces %s are not in canonical form", list(spans))
		}
	}
	return nil
}

// MarshalJSON implements json.Marshaler.
func (c Certificate) MarshalJSON() ([]byte, error) { return c.JSON() }

// UnmarshalJSON implements json.Unmarshaler.
func (c *Certificate) UnmarshalJSON(text []byte) error {
	parsed, err := Parse(text)
	if err == nil {
		*c = parsed
	}
	return err
}
