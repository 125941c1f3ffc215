package form

import "github.com/meshfeed/meshfeed/internal/jsontext"

// skipped skips a value.
type skipped struct{ Value }

func (skipped) Read(r *jsontext.Reader) error {
	r.Skip()
	return nil
}

// Skipping is a table with the keys of a form. Its values are skipped, and the first one is
// required.
func (f *Form) Skipping() (members []*Member) {
	for _, key := range f.keys[1:] {
		members = append(members, Key(key, skipped{}, ""))
	}
	members[0].Required()
	return members
}
