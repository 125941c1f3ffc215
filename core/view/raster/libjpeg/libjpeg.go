//go:build libjpeg

package libjpeg

/*
#cgo CFLAGS: -I${SRCDIR}/../../../../.build/libjpeg/include
#cgo linux,amd64 LDFLAGS: -L${SRCDIR}/../../../../.build/libjpeg/linux-amd64
#cgo linux,arm64 LDFLAGS: -L${SRCDIR}/../../../../.build/libjpeg/linux-arm64
#cgo darwin,arm64 LDFLAGS: -L${SRCDIR}/../../../../.build/libjpeg/darwin-arm64
#cgo LDFLAGS: -lmeshfeedjpeg
#include "libjpeg.h"
*/
import "C"

import (
	"errors"
	"image"
	"runtime"
	"unsafe"

	"github.com/meshfeed/meshfeed/core/view/raster"
)

func init() { raster.UseJPEG(raster.JPEG{Name: Name, Open: open}) }

// chunk is the number of lines that one call reads.
const chunk = 16

// lines are the lines of a part of an image.
type lines struct {
	image        *C.mfj_image
	file         runtime.Pinner
	buffer, rest []byte // lines that one call has read, and those that Next has not returned
	first, width int    // of the bytes of a line in the buffer: where the part begins, and all
	part         int    // bytes of a line of the part
	unread       int    // lines of the part
}

// open implements raster.JPEG.
func open(file []byte, size image.Point, scale int, part image.Rectangle) (raster.Lines, error) {
	l := &lines{image: C.mfj_new(), part: 4 * part.Dx(), unread: part.Dy()}
	if l.image == nil {
		return nil, errors.New("libjpeg: out of memory")
	}
	start := unsafe.SliceData(file)
	l.file.Pin(start)
	what := C.mfj_part{
		width: C.uint32_t(size.X), height: C.uint32_t(size.Y), scale: C.uint32_t(scale),
		left: C.uint32_t(part.Min.X), right: C.uint32_t(part.Max.X), top: C.uint32_t(part.Min.Y),
	}
	var first, width C.uint32_t
	if !C.mfj_start(l.image, (*C.uint8_t)(start), C.size_t(len(file)), &what, &first, &width) {
		err := l.err()
		l.free()
		return nil, err
	}
	l.first, l.width = 4*int(first), 4*int(width)
	l.buffer = make([]byte, min(chunk, l.unread)*l.width)
	return l, nil
}

// Next implements raster.Lines.
func (l *lines) Next() ([]byte, error) {
	if len(l.rest) == 0 {
		n := min(chunk, l.unread)
		if !C.mfj_read(l.image, (*C.uint8_t)(unsafe.SliceData(l.buffer)), C.uint32_t(n)) {
			return nil, l.err()
		}
		l.rest, l.unread = l.buffer[:n*l.width], l.unread-n
	}
	line := l.rest[l.first:][:l.part]
	l.rest = l.rest[l.width:]
	return line, nil
}

// Close implements raster.Lines.
func (l *lines) Close() (err error) {
	if l.unread == 0 && !C.mfj_end(l.image) {
		err = l.err()
	}
	l.free()
	return err
}

func (l *lines) free() {
	C.mfj_free(l.image)
	l.file.Unpin()
}

func (l *lines) err() error { return errors.New("libjpeg: " + C.GoString(C.mfj_error(l.image))) }
