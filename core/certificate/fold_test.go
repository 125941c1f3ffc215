package certificate

import "testing"

// A run through any number of epochs takes no more room than through three.
func TestDeliveredDoesNotGrow(t *testing.T) {
	c := Certificate{Sequence: Sequence{Records: 100}}
	c.Delivered(0, 32, 96, Tally{})
	for epoch := range int64(10_000) {
		c.Delivered(1+epoch, 0, 64, Tally{})
		c.Delivered(1+epoch, 64, 96, Tally{})
		if n := len(c.runs); n > 3 {
			t.Fatalf("after epoch %d there are %d runs", epoch, n)
		}
	}
}
