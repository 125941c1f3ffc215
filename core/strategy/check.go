package strategy

// Check returns the error that [Advise] would return, without computing anything.
func Check(d *Document) error {
	if err := d.Validate(); err != nil {
		return err
	}
	_, err := newPlanner(d)
	return err
}
