package main

/*
#include "internal.h"
*/
import "C"

import "github.com/meshfeed/meshfeed/core/status"

// formats has the functions that write a report of type R.
type formats[R any] struct {
	text func(R) string
	json func(R) []byte
}

// formatReport reads a document, and returns its report in one of the formats.
func formatReport[R any](op string, document []byte, format C.int32_t, read func([]byte) (R, error), f formats[R]) ([]byte, error) {
	write := map[C.int32_t]func(R) []byte{
		C.MF_TEXT: func(r R) []byte { return []byte(f.text(r)) },
		C.MF_JSON: f.json,
	}[format]
	if write == nil {
		return nil, status.Errorf(status.InvalidArgument, op, "format is %d, but must be MF_TEXT or MF_JSON", int(format))
	}
	r, err := read(document)
	if err != nil {
		return nil, err
	}
	return write(r), nil
}
