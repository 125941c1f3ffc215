package main

/*
#include "internal.h"

#include <stdlib.h>
*/
import "C"

import (
	"encoding/json"
	"unsafe"

	"github.com/meshfeed/meshfeed/core/source"
)

// exportClasses adds the names of classes to the metadata of a schema, in the form of Hugging
// Face's datasets library, which [arrowtype.Describe] reads. If it fails, it releases the
// schema.
func exportClasses(out *C.struct_ArrowSchema, fields []source.Field) error {
	text := classesOf(fields)
	if text == "" {
		return nil
	}
	key, value := C.CString("huggingface"), C.CString(text)
	defer C.free(unsafe.Pointer(key))
	defer C.free(unsafe.Pointer(value))
	if !C.mfi_schema_metadata(out, key, value) {
		C.mfi_record_schema_release(out)
		return noMemory("the names of classes")
	}
	return nil
}

// feature is what the type of a column means to Hugging Face's datasets library.
type feature struct {
	Type    string   `json:"_type"`
	Names   []string `json:"names,omitempty"`
	Feature *feature `json:"feature,omitempty"` // feature of the list's elements
	Length  int      `json:"length,omitempty"`  // length of each list; -1 if it varies
}

// classesOf returns the features of the fields that have names of classes, as JSON. It is
// empty if no field has them.
func classesOf(fields []source.Field) string {
	features := map[string]*feature{}
	for _, f := range fields {
		if f.Names == nil {
			continue
		}
		v := &feature{Type: "ClassLabel", Names: f.Names}
		for i := len(f.Shape) - 1; i >= 0; i-- {
			v = &feature{Type: "List", Feature: v, Length: f.Shape[i]}
		}
		for range f.Ragged {
			v = &feature{Type: "List", Feature: v, Length: -1}
		}
		features[f.Name] = v
	}
	if len(features) == 0 {
		return ""
	}
	text, _ := json.Marshal(map[string]any{"info": map[string]any{"features": features}})
	return string(text)
}
