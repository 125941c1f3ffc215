//go:build libjpeg

package raster_test

import _ "github.com/meshfeed/meshfeed/core/view/raster/libjpeg" // all tests run with this decoder
