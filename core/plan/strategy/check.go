package strategy

// Check returns the errors of [Advise] that it finds without evaluating a mesh. Advise also
// returns an error if a layer keeps more than 2^53 bytes for one micro-batch.
func Check(d *Document) error {
	if err := d.Validate(); err != nil {
		return err
	}
	_, err := newPlanner(d)
	return err
}
