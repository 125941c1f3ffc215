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
	version      = 1
	maxTextBytes = 1 << 20
	maxName      = 64
)

// document is the JSON form.
type document struct {
	Version int64      `json:"meshfeed"`
	Order   string     `json:"order"`
	Dataset string     `json:"dataset"`
	Records int64      `json:"records"`
	Seed    int64      `json:"seed"`
	Runs    [][4]int64 `json:"runs"` // epoch, epochs, first, last
	Rows    int64      `json:"rows"`
	Digest  string     `json:"digest"`
}

// JSON gives the certificate as one line of JSON, always the same bytes for
// equal certificates:
//
//	{"meshfeed":1,"order":"shuffle.1","dataset":"…","records":1797,"seed":0,"runs":[[0,3,0,1792]],"rows":5376,"digest":"…"}
//
// A run is [epoch, epochs, first, last]. The error is that of Runs.
func (c Certificate) JSON() ([]byte, error) {
	runs, err := c.Runs()
	if err != nil {
		return nil, err
	}
	d := document{
		Version: version, Order: c.Order, Dataset: c.Dataset, Records: c.Records, Seed: c.Seed,
		Runs: [][4]int64{}, Rows: c.Rows, Digest: c.Digest.String(),
	}
	for _, r := range runs {
		d.Runs = append(d.Runs, [4]int64{r.Epoch, r.Epochs, r.First, r.Last})
	}
	return json.Marshal(d)
}

// Parse reads what JSON gave, keys in any order. It is strict: every key once,
// no other, and runs in canonical form.
func Parse(data []byte) (Certificate, error) {
	if len(data) > maxTextBytes {
		return Certificate{}, wrong("the text has %d bytes, but may have %d", len(data), maxTextBytes)
	}
	var d document
	if err := json.Unmarshal(data, &d); err != nil {
		return Certificate{}, wrong("%v", err)
	}
	if d.Version > version {
		return Certificate{}, fail(status.Incompatible, "the certificate is of version %d, but this release reads version %d", d.Version, version).
			WithHint("read it with the release that wrote it")
	}
	c, err := d.certificate()
	if err != nil {
		return Certificate{}, err
	}
	canonical, err := c.JSON()
	if err != nil {
		return Certificate{}, err
	}
	if !sameValues(data, canonical) {
		return Certificate{}, wrong("a key is missing, unknown or twice there, or runs are not in canonical form")
	}
	return c, nil
}

func wrong(format string, args ...any) *status.Error {
	return fail(status.InvalidArgument, "this is not a certificate: "+format, args...).WithHint("pass on what a loader gave, unchanged")
}

// certificate checks all bounds.
func (d document) certificate() (Certificate, error) {
	c := Certificate{Sequence: Sequence{Order: d.Order, Dataset: d.Dataset, Records: d.Records, Seed: d.Seed}, Tally: Tally{Rows: d.Rows}}
	digest, ok := fromHex(d.Digest)
	_, known := fromHex(d.Dataset)
	switch {
	case !ok || !known:
		return c, wrong("dataset %q and digest %q must have 32 hexadecimal digits", d.Dataset, d.Digest)
	case len(d.Order) > maxName:
		return c, wrong("the name of the order has %d bytes", len(d.Order))
	case d.Records < 0 || d.Records > sampler.MaxRecords || d.Seed < -sampler.MaxSeed || d.Seed > sampler.MaxSeed || d.Rows < 0 || d.Rows > maxCount:
		return c, wrong("%d records, seed %d or %d rows are out of bounds", d.Records, d.Seed, d.Rows)
	case len(d.Runs) > maxRuns:
		return c, wrong("there are %d runs, but may be %d", len(d.Runs), maxRuns)
	}
	c.Digest = Digest{binary.BigEndian.Uint64(digest), binary.BigEndian.Uint64(digest[8:])}
	for _, v := range d.Runs {
		r := Run{Epoch: v[0], Epochs: v[1], First: v[2], Last: v[3]}
		if r.Epoch < 0 || r.Epoch > maxCount || r.Epochs < 1 || r.Epochs > maxCount || r.First < 0 || r.Last <= r.First || r.Last > d.Records {
			return c, wrong("run %v is not within epochs of %d records", v, d.Records)
		}
		c.runs = append(c.runs, r)
	}
	return c, nil
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
