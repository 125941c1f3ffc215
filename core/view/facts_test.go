package view_test

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// factual is a dataset that knows all facts.
type factual struct{ source.Source }

func (s factual) Facts() source.Facts {
	return source.Facts{
		Units:      func() []int64 { return []int64{s.Len() / 3, s.Len() - s.Len()/3} },
		Coverage:   func() (hashed, of int64) { return 3, 4 },
		CacheBytes: func() int64 { return 100 },
		Cache:      func() source.CacheInfo { return source.CacheInfo{Folder: "folder", Limit: 5} },
		Decoding:   func() source.Work { return source.Work{Running: 1, Waiting: 2} },
		Fetched:    func() source.Fetched { return source.Fetched{Requests: 1, Bytes: 2} },
		Commits:    func() []string { return []string{"commit"} },
		FarBytes:   func() int64 { return 7 },
		Check: func(_ context.Context, fields []int, start, stop int64) error {
			if start < 0 || stop > s.Len() {
				return status.Errorf(status.OutOfRange, "test", "records [%d, %d) of %d", start, stop, s.Len())
			}
			return s.Schema().CheckFields(fields)
		},
		Adjacent: s.Source.Facts().Adjacent,
		Notes:    notes{},
		Changes: func(context.Context) ([]source.Change, error) {
			return []source.Change{{Record: s.Len(), Before: source.Fingerprint{1}}}, nil
		},
		Version: func() (string, error) { return "version", nil },
		Components: func(ctx context.Context) (source.Component, error) {
			f, err := s.Fingerprint(ctx)
			return source.Component{Label: "factual", Hash: f}, err
		},
	}
}

// checkFacts checks that a view of views forwards every fact of the factual datasets below all of
// them. The members of Facts are listed by reflection, so that a new one is not forgotten.
func checkFacts(t *testing.T, src source.Source, views []string) {
	t.Helper()
	facts := src.Facts()
	has := func(kind string) bool {
		return slices.ContainsFunc(views, func(v string) bool { return strings.HasPrefix(v, kind) })
	}
	if facts.Drawn != has("mix") {
		t.Errorf("Drawn is %v", facts.Drawn)
	}
	slow := false
	for _, v := range views { // from below
		slow = strings.HasPrefix(v, "decode_image") || slow && !strings.HasPrefix(v, "cache")
	}
	if facts.Slow != slow {
		t.Errorf("Slow is %v", facts.Slow)
	}
	for member, value := range reflect.ValueOf(facts).Fields() {
		if value.Kind() != reflect.Func {
			continue
		}
		optional := member.Name == "Adjacent" || // the rows of most views do not lie together
			member.Name == "Check" && has("pack") // Pack reads all lengths at once
		if value.IsNil() && !optional {
			t.Fatalf("%s is not forwarded", member.Name)
		}
	}
	if facts.Units() == nil && !has("take") && !has("mix") {
		t.Error("the units are not forwarded")
	}
	if facts.Notes == nil {
		t.Error("the notes are not forwarded")
	}
	if facts.Changes != nil {
		changes, err := facts.Changes(t.Context())
		if err != nil || len(changes) != 1 && !has("mix") && !has("concat") {
			t.Errorf("the changes are %v, %v", changes, err)
		}
	}
	if hashed, of := facts.Coverage(); hashed == 0 || 4*hashed != 3*of {
		t.Errorf("the fingerprint covers %d of %d", hashed, of)
	}
	if w := facts.Decoding(); w.Running == 0 || w.Waiting != 2*w.Running {
		t.Errorf("decoding took %+v", w)
	}
	if n := facts.Fetched(); n.Requests == 0 || n.Bytes != 2*n.Requests {
		t.Errorf("%+v was fetched", n)
	}
	if names := facts.Commits(); !slices.Equal(names, []string{"commit"}) {
		t.Errorf("the commits are %q", names)
	}
	if v, err := facts.Version(); has("mix") {
		if status.CodeOf(err) != status.Unsupported {
			t.Errorf("the version of a mixture is %q, %v", v, err)
		}
	} else if err != nil || !strings.Contains(v, "version") {
		t.Errorf("the version is %q, %v", v, err)
	}
	if n, info := facts.CacheBytes(), facts.Cache(); !has("cache") && (n != 100 || info.Folder != "folder" || info.Limit != 5) {
		t.Errorf("the cache has %d bytes, and %+v", n, info)
	}
	all := make([]int, len(src.Schema().Fields))
	for i := range all {
		all[i] = i
	}
	if err := source.Check(t.Context(), src, all); err != nil {
		t.Error(err)
	}
	component, err := source.ComponentsOf(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	for len(component.Below) > 0 {
		component = component.Below[0]
	}
	if component.Label != "factual" {
		t.Errorf("the lowest component is %q", component.Label)
	}
}
