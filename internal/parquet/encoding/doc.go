// Package encoding decodes the values of Parquet pages.
//
// There is a file for every encoding of the format's page "Encodings.md". A decoder takes
// the bytes of a page, decompressed and without levels, and writes values into memory of
// the caller, which has the size for the number of values in the page header. Fixed-width
// values are little-endian bytes, as Arrow stores them. Values of variable length go to
// [Bytes].
//
// Pages are not trusted. A decoder reads only the bytes that it was given, and fails if a
// page has too few values. It allocates at most a few words for each value, and the bytes
// that the limit of a [Bytes] permits. So the caller bounds the number of values.
// Its errors name neither page nor column; the caller adds them.
package encoding

import "errors"

// errShort is the error of a page that ends before its last value.
var errShort = errors.New("the page ends before its last value")
