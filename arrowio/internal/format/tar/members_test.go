package tar

import (
	"reflect"
	"testing"
)

// TestIndex checks that an index comes back, and that any cut or changed byte gives no members outside of
// the archive.
func TestIndex(t *testing.T) {
	list := []Member{{"a.jpg", 512, 1000, nil}, {"a.cls", 2048, 2, []byte("17")}, {"", 2560, 0, []byte{}}}
	index := AppendIndex(nil, list)
	if got, ok := ReadIndex(index, 3000); !ok || !reflect.DeepEqual(got, list) {
		t.Errorf("got %v", got)
	}
	if _, ok := ReadIndex(index, 1500); ok {
		t.Error("an index fits a shorter archive")
	}
	for i := range index {
		if _, ok := ReadIndex(index[:i], 3000); ok && i > 0 && len(mustFit(index[:i])) == 3 {
			t.Errorf("an index of %d bytes is whole", i)
		}
		for _, b := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			changed := append([]byte{}, index...)
			changed[i] = b
			for _, m := range mustFit(changed) {
				if m.Offset < 0 || m.Size < 0 || m.Offset+m.Size > 3000 {
					t.Errorf("byte %d is %d: %+v", i, b, m)
				}
			}
		}
	}
}

func mustFit(index []byte) []Member {
	list, _ := ReadIndex(index, 3000)
	return list
}
