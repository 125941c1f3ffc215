// Package webp decodes WebP files. A program imports it for its side effect:
//
//	import _ "github.com/meshfeed/meshfeed/core/view/raster/webp"
//
// It is a package of its own, because the decoder is in the module golang.org/x/image, and package core
// needs the standard library only. The pixels are the same in every program: see package raster.
package webp

import (
	"golang.org/x/image/webp"

	"github.com/meshfeed/meshfeed/core/view/raster"
)

func init() { raster.UseWebP(webp.Decode, webp.DecodeConfig) }
