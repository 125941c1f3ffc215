package arrowmeta

import "io"

// readAhead is how much is read at once if headers are close together.
const readAhead = 64 << 10

// window reads pieces of a file, mostly in order, with few calls.
type window struct {
	r    io.ReaderAt
	size int64 // size of the file
	off  int64 // offset of buf
	buf  []byte
}

// bytes returns n bytes at off. A read fetches up to ahead bytes more. The slice
// is valid until the next call.
func (w *window) bytes(off int64, n, ahead int) ([]byte, error) {
	if n < 0 || off < 0 || off > w.size-int64(n) {
		return nil, io.ErrUnexpectedEOF
	}
	if from := off - w.off; from >= 0 && from <= int64(len(w.buf)-n) {
		return w.buf[from : int(from)+n], nil
	}
	want := int(min(int64(n)+int64(ahead), w.size-off))
	if cap(w.buf) < want {
		w.buf = make([]byte, max(want, 4<<10))
	}
	w.buf, w.off = w.buf[:want], off
	got, err := w.r.ReadAt(w.buf, off)
	w.buf = w.buf[:min(max(got, 0), want)]
	if got >= n {
		return w.buf[:n], nil
	}
	w.buf = w.buf[:0]
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	return nil, err
}
