package certificate

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"slices"

	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/status"
)

const (
	version      = 2
	maxTextBytes = 1 << 20
	maxName      = 64
)

// document is the JSON form.
type document struct {
	Version int64         `json:"meshfeed"`
	Order   string        `json:"order"`
	Dataset string        `json:"dataset"`
	Records int64         `json:"records"`
	Seed    int64         `json:"seed"`
	Runs    []runDocument `json:"runs"`
}

type runDocument struct {
	Mesh      [][2]int64 `json:"mesh"`      // [start, stop) of process numbers
	Processes [][2]int64 `json:"processes"` // likewise
	Parts     int64      `json:"parts"`
	Delivered [][4]int64 `json:"delivered"` // epoch, epochs, first, last
	Dropped   [][4]int64 `json:"dropped"`
	Skipped   [][4]int64 `json:"skipped"`
	Rows      int64      `json:"rows"`
	Digest    string     `json:"digest"`
}

// JSON gives the certificate as one line of JSON, always the same bytes for
// equal certificates:
//
//	{"meshfeed":2,"order":"shuffle.1","dataset":"…","records":1797,"seed":0,"runs":[
//	{"mesh":[[0,4]],"processes":[[0,4]],"parts":1,"delivered":[[0,3,0,1792]],"dropped":[[0,3,1792,1797]],"skipped":[],"rows":5376,"digest":"…"}]}
//
// Processes stand as ranges [start, stop), positions as [epoch, epochs, first,
// last]. The error is ResourceExhausted for runs that Parse would refuse.
func (c Certificate) JSON() ([]byte, error) {
	d := document{Version: version, Order: c.Order, Dataset: c.Dataset, Records: c.Records, Seed: c.Seed, Runs: []runDocument{}}
	for _, r := range c.runs {
		d.Runs = append(d.Runs, runDocument{
			Mesh: pairs(r.Mesh), Processes: pairs(r.Processes), Parts: r.Parts,
			Delivered: numbers(r.Delivered), Dropped: numbers(r.Dropped), Skipped: numbers(r.Skipped),
			Rows: r.Rows, Digest: r.Digest.String(),
		})
	}
	text, err := json.Marshal(d)
	if err == nil && len(text) > maxTextBytes {
		return nil, fail(status.ResourceExhausted, "the certificate takes %d bytes, but may take %d", len(text), maxTextBytes).
			WithHint("keep the certificates of fewer runs in one")
	}
	return text, err
}

func pairs(p Processes) [][2]int64 { return append([][2]int64{}, p...) }

func numbers(spans []Span) [][4]int64 {
	list := [][4]int64{}
	for _, s := range spans {
		list = append(list, [4]int64{s.Epoch, s.Epochs, s.First, s.Last})
	}
	return list
}

// Parse reads what JSON gave, keys in any order. It is strict: every key once,
// no other, and runs in canonical form.
func Parse(data []byte) (Certificate, error) {
	if len(data) > maxTextBytes {
		return Certificate{}, wrong("the text has %d bytes, but may have %d", len(data), maxTextBytes)
	}
	if text := bytes.TrimLeft(data, " \t\r\n"); len(text) > 0 && text[0] != '{' {
		return Certificate{}, wrong("it is not a JSON object")
	}
	var d document
	err := json.Unmarshal(data, &d)
	if d.Version > 0 && d.Version != version {
		return Certificate{}, fail(status.Incompatible, "the certificate is of version %d, but this release reads version %d", d.Version, version).
			WithHint("read it with the release that wrote it")
	}
	if err != nil {
		return Certificate{}, wrong("%v", err)
	}
	c, err := d.certificate()
	if err != nil {
		return Certificate{}, err
	}
	text, err := c.JSON()
	if err != nil {
		return Certificate{}, err
	}
	if !sameValues(data, text) {
		return Certificate{}, wrong("a key is missing, unknown or twice there, or runs are not in canonical form")
	}
	return c, nil
}

func wrong(format string, args ...any) *status.Error {
	return fail(status.InvalidArgument, "this is not a certificate: "+format, args...).WithHint("pass on what a loader gave, unchanged")
}

// certificate checks all bounds.
func (d document) certificate() (Certificate, error) {
	_, known := fromHex(d.Dataset)
	switch {
	case !known:
		return Certificate{}, wrong("dataset %q must have 32 hexadecimal digits", d.Dataset)
	case len(d.Order) > maxName:
		return Certificate{}, wrong("the name of the order has %d bytes", len(d.Order))
	case d.Records < 0 || d.Records > sampler.MaxRecords || d.Seed < -sampler.MaxSeed || d.Seed > sampler.MaxSeed:
		return Certificate{}, wrong("%d records or seed %d are out of bounds", d.Records, d.Seed)
	}
	pieces := 0
	var runs []Run
	for _, v := range d.Runs {
		r, err := v.run(d.Records)
		if err != nil {
			return Certificate{}, err
		}
		if pieces += r.pieces(); pieces > maxPieces {
			return Certificate{}, wrong("its runs have more than %d pieces", maxPieces)
		}
		runs = append(runs, r)
	}
	return New(Sequence{Order: d.Order, Dataset: d.Dataset, Records: d.Records, Seed: d.Seed}, runs)
}

func (d runDocument) run(records int64) (Run, error) {
	r := Run{Mesh: d.Mesh, Processes: d.Processes, Parts: d.Parts}
	digest, ok := fromHex(d.Digest)
	switch {
	case !ok:
		return r, wrong("digest %q must have 32 hexadecimal digits", d.Digest)
	case !r.Mesh.valid() || !r.Processes.valid() || len(r.Mesh) == 0 || len(r.Processes) == 0:
		return r, wrong("mesh %v or processes %v are not ascending ranges of numbers", d.Mesh, d.Processes)
	case d.Parts < 0 || d.Parts > maxParts || d.Rows < 0 || d.Rows > maxCount:
		return r, wrong("%d parts or %d rows are out of bounds", d.Parts, d.Rows)
	}
	r.Tally = Tally{d.Rows, Digest{binary.BigEndian.Uint64(digest), binary.BigEndian.Uint64(digest[8:])}}
	for _, list := range []struct {
		to   *[]Span
		from [][4]int64
	}{{&r.Delivered, d.Delivered}, {&r.Dropped, d.Dropped}, {&r.Skipped, d.Skipped}} {
		for _, v := range list.from {
			s := Span{Epoch: v[0], Epochs: v[1], First: v[2], Last: v[3]}
			if s.Epoch < 0 || s.Epoch > maxCount || s.Epochs < 1 || s.Epochs > maxCount || s.First < 0 || s.Last <= s.First || s.Last > records {
				return r, wrong("piece %v is not within epochs of %d records", v, records)
			}
			*list.to = append(*list.to, s)
		}
		if !canonical(*list.to) {
			return r, wrong("the pieces %v are not in canonical form", list.from[:min(len(list.from), shown)])
		}
	}
	return r, nil
}

func fromHex(text string) ([]byte, bool) {
	b, err := hex.DecodeString(text)
	return b, err == nil && len(b) == 16
}

// sameValues says whether two texts are the same JSON but for space and the
// order of keys. Where a key stands twice, one text is longer.
func sameValues(a, b []byte) bool {
	var values [2]any
	var compact [2]bytes.Buffer
	for i, text := range [][]byte{a, b} {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if d.Decode(&values[i]) != nil || json.Compact(&compact[i], text) != nil {
			return false
		}
	}
	return compact[0].Len() == compact[1].Len() && reflect.DeepEqual(values[0], values[1])
}

// MarshalJSON implements json.Marshaler.
func (c Certificate) MarshalJSON() ([]byte, error) { return c.JSON() }

// UnmarshalJSON implements json.Unmarshaler.
func (c *Certificate) UnmarshalJSON(text []byte) error {
	parsed, err := Parse(slices.Clone(text))
	if err == nil {
		*c = parsed
	}
	return err
}
