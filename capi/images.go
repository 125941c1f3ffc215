package main

import (
	_ "github.com/meshfeed/meshfeed/core/view/raster/libjpeg" // decodes JPEG with the tag libjpeg
	_ "github.com/meshfeed/meshfeed/core/view/raster/webp"
)
