package parts

import (
	"crypto/sha256"
	"io"
	"strings"
)

// Note implements source.Notes. A hash comes before the text, because the bytes of an entry have none.
func (c *Cache) Note(key string) []byte {
	e, ok := c.note(key)
	if !ok {
		return nil
	}
	found, ok, err := e.find()
	if err != nil || !ok {
		return nil
	}
	defer found.Close()
	text := make([]byte, found.Size)
	if _, err := found.ReadAt(text, 0); err != nil || len(text) < sha256.Size {
		return nil
	}
	if sum := sha256.Sum256(text[sha256.Size:]); string(sum[:]) != string(text[:sha256.Size]) {
		_ = e.folder.Remove(key)
		return nil
	}
	return text[sha256.Size:]
}

// KeepNote implements source.Notes.
func (c *Cache) KeepNote(key string, text []byte) {
	e, ok := c.note(key)
	if !ok {
		return
	}
	made, ok, _, _ := e.make(func(w io.Writer) error {
		sum := sha256.Sum256(text)
		_, err := w.Write(append(sum[:], text...))
		return err
	})
	if ok {
		_ = made.Close()
	}
}

// note returns the entry of a note, unless nothing may be written. A listing of the folder names the
// dataset.
func (c *Cache) note(key string) (e entry, ok bool) {
	if c.Path == "memory" {
		return e, false
	}
	folder, err := c.Options.folder()
	return entry{folder, key, strings.TrimSpace(c.about(nil)) + "\ncounts"}, err == nil
}
