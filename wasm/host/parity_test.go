package host_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"path/filepath"
	"testing"

	"github.com/meshfeed/meshfeed/tests/guest"
	"github.com/meshfeed/meshfeed/wasm/host"
	"github.com/meshfeed/meshfeed/wasm/internal/reply"
)

// questions lists questions about every golden document, about orders, and about
// the files in the tests of arrowmeta, whole and cut off.
func questions(t testing.TB) []guest.Question {
	var list []guest.Question
	for _, d := range goldenDocuments(t) {
		list = append(list, guest.Question{Name: d.name, Ask: "describe", Input: d.text})
		for array := range uint32(3) {
			for what := range uint32(4) {
				list = append(list, guest.Question{Name: d.name, Ask: "table", Args: [4]uint32{array, what, 0, 5000}})
			}
		}
		list = append(list, guest.Question{Name: d.name, Ask: "table", Args: [4]uint32{0, reply.Devices, 3, 2}})
	}
	for _, text := range orderQuestions {
		list = append(list, guest.Question{Name: text, Ask: "samples", Input: []byte(text)})
	}
	files, err := filepath.Glob("../../internal/arrowmeta/testdata/*.*")
	if err != nil || len(files) < 20 {
		t.Fatal(files, err)
	}
	for _, path := range files {
		data, name := read(t, path), filepath.Base(path)
		for _, from := range []int{0, 1, len(data) / 2, max(len(data)-100, 0), len(data)} {
			list = append(list, guest.Question{Name: name, Ask: "schema", Input: data[from:], Size: int64(len(data))})
		}
		list = append(list, guest.Question{Name: name, Ask: "schema", Input: data[:len(data)/2], Size: int64(len(data) / 2)})
	}
	return list
}

var orderQuestions = []string{
	`{"order":"shuffle.1","seed":42,"records":1797,"epoch":3,"position":5,"count":64}`,
	`{"order":"shuffle.1","seed":-9007199254740992,"records":1099511627776,"epoch":-1,"position":1099511627770,"count":64}`,
	`{"order":"sequential.1","records":10,"count":100}`,
	`{"order":"local.1:4:64","seed":7,"records":100000,"position":1,"count":200}`,
	`{"order":"local.1:3:64","records":10,"count":1}`,
	`{"order":"random","records":10,"count":1}`,
	`{"order":"shuffle.1","records":-1,"count":1}`,
	`{"order":"shuffle.1","records":10,"position":11,"count":1}`,
	`{"order":"shuffle.1","records":10,"count":65537}`,
	`{"order":"shuffle.1","records":1e3,"count":1}`,
	`{"order":"shuffle.1","records":9007199254740993,"count":1}`,
	`{"order":3}`, `{"epochs":3}`, `[]`, `{"order":`, ``, "\xff",
}

// native computes the replies in this process.
func native(list []guest.Question) [][]byte {
	var v reply.Validator
	replies := make([][]byte, len(list))
	for i, q := range list {
		switch q.Ask {
		case "describe":
			replies[i] = v.Describe(q.Input)
		case "table":
			replies[i] = littleEndian(v.Table(q.Args[0], q.Args[1], q.Args[2], q.Args[3]))
		case "samples":
			replies[i] = reply.Samples(q.Input)
		case "schema":
			replies[i] = reply.Schema(q.Input, float64(q.Size))
		}
	}
	return replies
}

func littleEndian(numbers []float64) (reply []byte) {
	for _, n := range numbers {
		reply = binary.LittleEndian.AppendUint64(reply, math.Float64bits(n))
	}
	return reply
}

func compare(t *testing.T, where string, list []guest.Question, got, want [][]byte) {
	t.Helper()
	for i, q := range list {
		if !bytes.Equal(got[i], want[i]) {
			t.Errorf("%s: %s: %s %v: %d bytes\n%.300q\nwant %d bytes\n%.300q", where, q.Name, q.Ask, q.Args, len(got[i]), got[i], len(want[i]), want[i])
		}
	}
}

// TestParityWithWazero compares every reply, byte for byte.
func TestParityWithWazero(t *testing.T) {
	list := questions(t)
	want, got := native(list), make([][]byte, len(list))
	ctx := context.Background()
	for i := 0; i < len(list); i++ {
		var err error
		switch q := list[i]; q.Ask {
		case "describe":
			if got[i], err = validator.Describe(ctx, q.Input); err == nil {
				i = tables(t, list, got, i)
			}
		case "samples":
			got[i], err = validator.Samples(ctx, q.Input)
		case "schema":
			got[i], err = validator.Schema(ctx, q.Input, q.Size)
		}
		if err != nil {
			t.Fatalf("%s: %v", list[i].Name, err)
		}
	}
	compare(t, "wazero", list, got, want)
	if len(list) < 500 {
		t.Errorf("only %d questions", len(list))
	}
}

// tables calls Tables for the tables that follow document i, and returns the
// number of the last one.
func tables(t *testing.T, list []guest.Question, got [][]byte, i int) int {
	t.Helper()
	var parts []host.Table
	for _, q := range list[i+1:] {
		if q.Ask != "table" {
			break
		}
		parts = append(parts, host.Table{Array: q.Args[0], What: q.Args[1], From: q.Args[2], Count: q.Args[3]})
	}
	found, err := validator.Tables(context.Background(), list[i].Input, parts...)
	if err != nil {
		t.Fatalf("%s: %v", list[i].Name, err)
	}
	for k, numbers := range found {
		got[i+1+k] = littleEndian(numbers)
	}
	return i + len(parts)
}

// TestParityWithNode compares every reply of the module in Node.
func TestParityWithNode(t *testing.T) {
	list := questions(t)
	compare(t, "node", list, guest.Ask(t, modulePath, list), native(list))
}

func TestSize(t *testing.T) { guest.CheckSize(t, module, 4_390_000, 1_156_000) }
