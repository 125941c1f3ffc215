//go:build !amd64

package gather

import "unsafe"

func prefetch(uintptr, int) {}

func streamLines(dst, src *byte, lines int) {
	copy(unsafe.Slice(dst, lines*64), unsafe.Slice(src, lines*64))
}

func endStream() {}

func copyRows(dst *byte, rows *uintptr, n int, src uintptr, run, width, _ int) {
	to := unsafe.Slice(dst, (n-1)*width+run)
	for i, row := range unsafe.Slice(rows, n) {
		copy(to[i*width:][:run], view[byte](row+src, run))
	}
}
