// Command pack makes a module that Go linked smaller, by a table that can be
// computed where the module runs.
//
//	pack MODULE.wasm
//
// Go's runtime finds the function of a program counter in a table that has 20
// bytes for every 4,096 counters: the number of the first function among them,
// and for every 16th part how many functions later it begins. On WebAssembly a
// function has 65,536 counters, so that 16 entries after each other have the
// same number, and nothing else. The linker writes them one by one: 450 KB of
// a module with 2,900 functions. Pack leaves them out, and appends a function
// that writes them when the module is instantiated, before anything else runs.
//
// Memory is then what it would have been, byte by byte. A module without such
// a table is left as it is.
package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: pack MODULE.wasm")
		os.Exit(2)
	}
	if err := packFile(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func packFile(path string) error {
	linked, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(linked, []byte(magic)) {
		return fmt.Errorf("%s is no WebAssembly module", path)
	}
	packed, ok := pack(linked)
	if !ok {
		fmt.Fprintln(os.Stderr, "pack: the table of functions is not where this Go release's linker puts it; the module is left as it is")
		return nil
	}
	return os.WriteFile(path, packed, 0o666)
}

const (
	entrySize = 20
	perFunc   = 16      // entries
	fewest    = 1 << 10 // entries that are worth a function; the smallest module has ten times as many
)

// pack gives the module without the table; ok says whether it has one.
func pack(linked []byte) (packed []byte, ok bool) {
	m := split(linked)
	segments := m.find(data).segments()
	from, entries := findTable(segments)
	if entries < fewest {
		return nil, false
	}
	writer := tableWriter(segments[from].at-perFunc*entrySize, perFunc+entries)
	m.find(data).setSegments(slices.Delete(segments, from, from+entries))
	kind, number := m.find(types).length(), m.find(imports).length()+m.find(functions).length() // Go imports nothing but functions
	m.find(types).push([]byte("\x60\x00\x00"))                                                  // from nothing to nothing
	m.find(functions).push(uvarint(kind))
	m.find(code).push(append(uvarint(len(writer)), writer...))
	return m.startWith(number).join(), true
}

// findTable finds the longest list of segments that is the table but for the
// entries of the first function, which are zero and therefore in no segment.
func findTable(segments []segment) (from, entries int) {
	end := 0 // of the segment before
	for i, s := range segments {
		if n := tableAt(segments[i:]); n > entries && end <= s.at-perFunc*entrySize {
			from, entries = i, n
		}
		end = s.at + len(s.bytes)
	}
	return from, entries
}

// tableAt counts the segments that are entries, if the first of them is that
// of the second function.
func tableAt(segments []segment) int {
	begin := segments[0].at - perFunc*entrySize
	for n, s := range segments {
		k := perFunc + n
		entry := binary.LittleEndian.AppendUint32(nil, uint32(k/perFunc))
		text := bytes.TrimLeft(entry, "\x00")
		at := begin + k*entrySize + len(entry) - len(text)
		if s.at != at || !bytes.Equal(s.bytes, bytes.TrimRight(text, "\x00")) {
			return n
		}
	}
	return len(segments)
}

// tableWriter gives the body of a function that writes the entries of a table.
func tableWriter(at, entries int) []byte {
	return slices.Concat(
		[]byte("\x01\x01\x7f"),          // an i32, k, which is 0
		[]byte("\x03\x40"),              // loop
		[]byte("\x20\x00\x41\x14\x6c"),  // 20 × k is where
		[]byte("\x20\x00\x41\x04\x76"),  // k / 16
		[]byte("\x36\x02"), uvarint(at), // is stored, counted from here
		[]byte("\x20\x00\x41\x01\x6a"),  // k + 1
		[]byte("\x22\x00"),              // is the next k
		[]byte("\x41"), varint(entries), // while it is less than this,
		[]byte("\x49\x0d\x00\x0b\x0b")) // go on with the loop
}
