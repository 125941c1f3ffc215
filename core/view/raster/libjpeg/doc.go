// Package libjpeg decodes JPEG files with libjpeg-turbo, three times as fast as Go. A program imports it for
// its side effect:
//
//	import _ "github.com/meshfeed/meshfeed/core/view/raster/libjpeg"
//
// The program tools/libjpeg.py builds libjpeg-turbo from a pinned source. With the build tag libjpeg, package
// raster then decodes with it. Without the tag, or without cgo, this package changes nothing.
//
// [Name] stands for the bytes of all images, so it is in fingerprints:
//
//   - libjpeg-turbo 3.1.2, with the accurate inverse DCT, and with interpolated colors
//   - a half, a quarter or an eighth of the size, if package raster asks for it
//
// The instructions of the processor do not matter: vectors give the same bytes as plain C.
//
// # Data of strangers
//
// An error of libjpeg-turbo ends its call by longjmp, in C alone. Missing or impossible data of an
// image is an error, but extra bytes between the parts of a file are none. A file may have [MaxScans] scans,
// because each scan can change all pixels. It may take 1 GiB of memory, as a progressive file of
// [raster.MaxPixels] needs.
//
// C reads the bytes of a file in place. If they are in a mapped file that another program truncates
// meanwhile, the process ends, unless it has a handler of SIGBUS like the C library.
package libjpeg

// Name stands for what this package decodes.
const Name = "libjpeg-turbo.1"

// MaxScans is the most scans of a file.
const MaxScans = 100
