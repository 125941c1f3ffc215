package arrowmeta

import "fmt"

// The kinds of messages, with the numbers of the union MessageHeader.
const (
	schemaMessage       = 1
	dictionaryMessage   = 2
	recordBatchMessage  = 3
	tensorMessage       = 4
	sparseTensorMessage = 5
)

func messageName(kind uint8) string {
	if name := pick(int(kind), "", "schema", "dictionary batch", "record batch", "tensor", "sparse tensor"); name != "" {
		return name
	}
	return fmt.Sprintf("message of unknown kind %d", kind)
}

// message holds the metadata of a message. Its header is a schema, a dictionary
// batch or a record batch.
type message struct {
	version version
	kind    uint8
	body    int64 // bytes that follow the metadata
	header  table
	custom  Metadata
}

// decodeMessage reads the FlatBuffers table Message, the root of f.
func decodeMessage(f *flatbuf) message {
	t := f.root()
	t.known("Message", 12)
	m := message{kind: t.u8(6, 0), body: t.i64(10, 0), custom: metadata(t, 12)}
	m.version = decodeVersion(t)
	if m.kind > sparseTensorMessage {
		f.refuse(t.pos, "a %s", messageName(m.kind))
	}
	if key := m.custom.Reserved(compressionKey); key != "" {
		f.refuse(t.pos, "the key %q of the message is not known here", key)
	}
	header, ok := t.child(8)
	if !ok {
		f.fail(0, "message without a header")
	}
	if m.body < 0 {
		f.fail(0, "body of %d bytes", m.body)
	}
	m.header = header
	return m
}

// decodeVersion reads the first field of Message and Footer.
func decodeVersion(t table) version {
	v := version(t.i16(4, 0))
	if t.f != nil && v != v4 && v != v5 {
		t.f.refuse(t.pos, "metadata version %d is not V4 or V5", v+1)
	}
	return v
}
