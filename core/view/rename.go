package view

import (
	"maps"
	"slices"

	"github.com/meshfeed/meshfeed/core/source"
)

// Rename returns a view with other names of fields. Names maps present names to new
// ones; two fields may exchange theirs. Fields without an entry keep their name.
func Rename(src source.Source, names map[string]string) (source.Source, error) {
	if err := source.Given("view", src); err != nil {
		return nil, err
	}
	schema := src.Schema()
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if _, err := schema.Find(name); err != nil {
			return nil, err
		}
		if err := checkName(names[name]); err != nil {
			return nil, err
		}
	}
	fields := make([]column, len(schema.Fields))
	for i, f := range schema.Fields {
		fields[i] = column{name: f.Name, below: i}
		if name, ok := names[f.Name]; ok {
			fields[i].name = name
		}
	}
	return withFields("renaming", src, fields, schema.Skipped)
}
