//go:build !race

// The tests of this file run in one goroutine.

package sampler_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/sampler"
)

// golden is testdata/orders.json: the orders and the record keys of the first
// release. Saved states name an order and not its records, so no entry of the file
// may ever change. New orders add entries.
type golden struct {
	Orders []struct {
		Order                string
		Seed, Epoch, Records int64
		Units                []int64 // sizes of the dataset's units, for an order that needs them
		Positions            []int64 // the first ones and the last ones
		Values               []int64 // the records there
		SHA256               string  // digest of all records as 8 little-endian bytes each; empty for large orders
	}
	Keys []struct {
		Seed, Epoch, Record int64
		Key                 [2]uint32
	}
}

func TestOrdersAreFrozen(t *testing.T) {
	text, err := os.ReadFile("testdata/orders.json")
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(text, &g); err != nil {
		t.Fatal(err)
	}
	if len(g.Orders) == 0 || len(g.Keys) == 0 {
		t.Fatal("the golden table is empty")
	}
	for _, o := range g.Orders {
		order, err := sampler.New(o.Order, o.Seed, o.Records)
		if o.Units != nil {
			order, err = sampler.NewOf(o.Order, o.Seed, o.Units)
		}
		if err != nil {
			t.Fatal(err)
		}
		e := order.Epoch(o.Epoch)
		var got []int64
		for _, position := range o.Positions {
			got = append(got, e.At(position))
		}
		if !slices.Equal(got, o.Values) || (o.SHA256 != "" && o.SHA256 != digest(e, o.Records)) {
			t.Errorf("%s, seed %d, epoch %d, %d records: got %v, frozen %v", o.Order, o.Seed, o.Epoch, o.Records, got, o.Values)
		}
	}
	for _, k := range g.Keys {
		if got := sampler.RecordKey(k.Seed, k.Epoch, k.Record); got != k.Key {
			t.Errorf("RecordKey(%d, %d, %d) = %v, frozen %v", k.Seed, k.Epoch, k.Record, got, k.Key)
		}
	}
}

func digest(e sampler.Epoch, records int64) string {
	all := make([]int64, records)
	e.Fill(all, 0)
	h := sha256.New()
	for _, record := range all {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(record)))
	}
	return hex.EncodeToString(h.Sum(nil))
}
