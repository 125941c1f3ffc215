package arrowmeta

import (
	"fmt"
	"slices"
	"strings"
)

// Schema lists the fields of a file or stream.
type Schema struct {
	Fields    []Field
	Metadata  Metadata
	BigEndian bool // the buffers hold big-endian values
}

// Field is a named column, or a child of a nested type.
type Field struct {
	Name       string
	Nullable   bool
	Type       Type        // type of the values, even if they are dictionary-encoded
	Dictionary *Dictionary // nil if the values are not dictionary-encoded
	Metadata   Metadata
}

// The keys of a field's extension type.
const (
	ExtensionName     = "ARROW:extension:name"
	ExtensionMetadata = "ARROW:extension:metadata"
)

// Extension returns the name and the parameters of the field's extension type, or ""
// if it has none. The field's Type is the storage type of the extension type.
func (f *Field) Extension() (name, parameters string) {
	name, _ = f.Metadata.Get(ExtensionName)
	parameters, _ = f.Metadata.Get(ExtensionMetadata)
	return name, parameters
}

// Dictionary describes how a field is dictionary-encoded: its record batches hold
// indices of type Index into the dictionary with number ID.
type Dictionary struct {
	ID    int64
	Index Type
}

// TypeString returns the type of the column as text, with the dictionary:
// dictionary<values=string, indices=int32>.
func (f *Field) TypeString() string {
	if f.Dictionary == nil {
		return f.Type.String()
	}
	return fmt.Sprintf("dictionary<values=%s, indices=%s>", f.Type.String(), f.Dictionary.Index.String())
}

// Metadata holds the key-value pairs of a field or schema, in their order.
type Metadata []KeyValue

// KeyValue is one pair. The texts may be invalid UTF-8.
type KeyValue struct{ Key, Value string }

// Reserved returns the first key in the namespace that Arrow reserves for itself which is not
// among the known ones, or "". Such a key may change what the bytes mean.
func (m Metadata) Reserved(known ...string) string {
	for _, kv := range m {
		if strings.HasPrefix(kv.Key, "ARROW:") && !slices.Contains(known, kv.Key) {
			return kv.Key
		}
	}
	return ""
}

// Get returns the value of the first pair with the key.
func (m Metadata) Get(key string) (value string, ok bool) {
	for _, kv := range m {
		if kv.Key == key {
			return kv.Value, true
		}
	}
	return "", false
}
