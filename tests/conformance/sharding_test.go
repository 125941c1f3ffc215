// Package conformance compares meshfeed with JAX: make_tables.py asks the
// installed JAX and writes tables, which the tests here and in tests/python
// read.
package conformance

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/status"
)

// The form of the tables; README.md explains every key.
type (
	tables struct {
		Format int
		JAX    string
		Seed   int
		Meshes []meshRow
		Cases  []caseRow
		Errors []errorRow

		MeshErrors []meshRow `json:"mesh_errors"`
		Specs      []struct {
			Entries []any
			Text    string
			JAX     string
		}
	}
	axis    mesh.Axis
	device  mesh.Device
	meshRow struct {
		Axes    []axis
		Devices []device
		Text    string
		Error   string
		JAX     string
	}
	caseRow struct {
		Mesh            int
		Spec            []any
		Shape           []int
		Text            string
		Shard           []int
		Distinct        []sharding.Index
		Device, Replica []int
		Replicated      bool
		Processes       []processRow
	}
	processRow struct {
		process     int
		addressable bool
		positions   []int
	}
	errorRow struct {
		Mesh  int
		Spec  []any
		Shape []int
		Error string
		Axis  string

		Dimension, Size, Tiles, Entries, Rank int
	}
)

func (a *axis) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&a.Name, &a.Size})
}

func (d *device) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&d.Process, &d.ID})
}

func (p *processRow) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&p.process, &p.addressable, &p.positions})
}

func read(t *testing.T) tables {
	t.Helper()
	all, err := load()
	if err != nil {
		t.Fatal(err)
	}
	if all.Format != 1 {
		t.Fatalf("the tables have format %d, want 1", all.Format)
	}
	return all
}

var load = sync.OnceValues(func() (all tables, err error) {
	file, err := os.Open("testdata/sharding.json.gz")
	if err != nil {
		return all, err
	}
	defer file.Close()
	text, err := gzip.NewReader(file)
	if err != nil {
		return all, err
	}
	return all, json.NewDecoder(text).Decode(&all)
})

func (row meshRow) build() (*mesh.Mesh, error) {
	axes, devices := make([]mesh.Axis, len(row.Axes)), make([]mesh.Device, len(row.Devices))
	for i, a := range row.Axes {
		axes[i] = mesh.Axis(a)
	}
	for i, d := range row.Devices {
		devices[i] = mesh.Device(d)
	}
	return mesh.New(axes, devices)
}

func (all tables) sharding(t *testing.T, number int, entries []any) (*sharding.NamedSharding, error) {
	t.Helper()
	m, err := all.Meshes[number].build()
	if err != nil {
		t.Fatal(err)
	}
	spec, err := sharding.NewSpec(entries...)
	if err != nil {
		t.Fatal(err)
	}
	return sharding.New(m, spec)
}

func TestMeshes(t *testing.T) {
	all := read(t)
	t.Logf("tables of JAX %s, seed %d", all.JAX, all.Seed)
	for i, row := range all.Meshes {
		m, err := row.build()
		if err != nil {
			t.Fatal(err)
		}
		if m.String() != row.Text {
			t.Errorf("mesh %d prints %s, JAX prints %s", i, m, row.Text)
		}
	}
}

// JAX accepts these meshes and then collapses them; meshfeed refuses them.
func TestMeshErrors(t *testing.T) {
	rows := read(t).MeshErrors
	if len(rows) < 2 {
		t.Fatal("the table is empty")
	}
	for _, row := range rows {
		if _, err := row.build(); status.CodeOf(err) != status.InvalidArgument {
			t.Errorf("%s: got %v (JAX: %s)", row.Error, err, row.JAX)
		}
	}
}

func TestSpecs(t *testing.T) {
	rows := read(t).Specs
	if len(rows) < 5 {
		t.Fatal("the table is too small")
	}
	for _, row := range rows {
		spec, err := sharding.NewSpec(row.Entries...)
		switch {
		case row.JAX != "" && status.CodeOf(err) != status.InvalidArgument:
			t.Errorf("%v: got %v, JAX raises %s", row.Entries, err, row.JAX)
		case row.JAX == "" && (err != nil || spec.String() != row.Text):
			t.Errorf("%v: got %v, %v, JAX prints %s", row.Entries, spec, err, row.Text)
		}
	}
}

func TestCases(t *testing.T) {
	all := read(t)
	if len(all.Cases) < 5000 {
		t.Fatalf("there are %d cases, want at least 5000", len(all.Cases))
	}
	for i, row := range all.Cases {
		s, err := all.sharding(t, row.Mesh, row.Spec)
		if err != nil {
			t.Fatalf("case %d: %v", i, err)
		}
		if !row.agrees(t, s) {
			t.Fatalf("case %d: %v of shape %v differs from JAX: %+v", i, s, row.Shape, row)
		}
	}
}

func (row caseRow) agrees(t *testing.T, s *sharding.NamedSharding) bool {
	t.Helper()
	indexes, replicas, err := s.Map(row.Shape)
	if err != nil {
		t.Error(err)
		return false
	}
	tiling, _ := s.Tiling(row.Shape)
	for i, index := range indexes {
		want := row.Distinct[row.Device[i]]
		if !index.Equal(want) || !s.IndexAt(row.Shape, i).Equal(want) {
			return false
		}
	}
	return s.Spec().String() == row.Text && slices.Equal(tiling.Index(0).Shape(), row.Shard) && slices.Equal(replicas, row.Replica) &&
		tiling.Count() == len(row.Distinct) && s.IsFullyReplicated() == row.Replicated && row.processesAgree(s.Mesh())
}

func (row caseRow) processesAgree(m *mesh.Mesh) bool {
	return !slices.ContainsFunc(row.Processes, func(p processRow) bool {
		local := m.Local(p.process)
		return !slices.Equal(local, p.positions) || (len(local) == m.Size()) != p.addressable
	})
}

func TestErrors(t *testing.T) {
	all := read(t)
	kinds := map[string]int{}
	for i, row := range all.Errors {
		s, err := all.sharding(t, row.Mesh, row.Spec)
		if err == nil {
			err = s.Check(row.Shape)
		}
		var e *status.Error
		if !errors.As(err, &e) || e.Code != status.InvalidArgument {
			t.Fatalf("error %d: got %v, JAX objects: %+v", i, err, row)
		}
		kinds[row.Error]++
		if !row.agrees(e) {
			t.Errorf("error %d: got %v, JAX: %+v", i, err, row)
		}
	}
	for _, kind := range []string{"unknown", "duplicate", "rank", "indivisible"} {
		if kinds[kind] < 50 {
			t.Errorf("only %d errors of kind %q", kinds[kind], kind)
		}
	}
}

// agrees reports whether an error has the facts of JAX's.
func (row errorRow) agrees(e *status.Error) bool {
	has := func(code, start string) bool { return e.Attr("code") == code && strings.HasPrefix(e.Msg, start) }
	axis, dimension := fmt.Sprintf("axis %q ", row.Axis), fmt.Sprintf("dimension %d ", row.Dimension)
	switch row.Error {
	case "unknown":
		return has(sharding.UnknownAxis, axis)
	case "duplicate":
		return has(sharding.DuplicateAxis, axis)
	case "rank":
		return has(sharding.SpecRank, "spec ") && e.Attr("entries") == int64(row.Entries) && e.Attr("rank") == int64(row.Rank)
	case "indivisible":
		return has(sharding.Indivisible, dimension) && e.Attr("tiles") == int64(row.Tiles) && e.Attr("size") == int64(row.Size)
	}
	return false
}
