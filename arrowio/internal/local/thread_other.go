//go:build !linux

package local

import "time"

var started = time.Now()

// ThreadTime counts all time as time on a processor, because this system's clock is not known here.
func ThreadTime() time.Duration { return time.Since(started) }
