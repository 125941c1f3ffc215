package arrowmeta

import (
	"errors"
	"fmt"
	"io"

	"github.com/meshfeed/meshfeed/core/status"
)

// place is a part of a file, for errors.
type place struct {
	what   string // "record batch"
	number int    // -1 where there is only one
	offset int64  // in the file
}

func (p place) String() string {
	if p.number < 0 {
		return fmt.Sprintf("%s at byte %d", p.what, p.offset)
	}
	return fmt.Sprintf("%s %d at byte %d", p.what, p.number, p.offset)
}

func (p place) error(code status.Code, err error) *status.Error {
	e := status.Errorf(code, "arrowmeta", "%v: %w", p, err).With("offset", p.offset)
	if p.number >= 0 {
		e.With(p.what, p.number)
	}
	return e
}

// damaged gives the error for bytes that are not what the format demands.
func (p place) damaged(err error) error {
	return p.error(status.DataLoss, err).WithHint("the data are damaged or cut short; write them again")
}

// unread gives the error for bytes that could not be had.
func (p place) unread(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return p.damaged(errors.New("the data end here"))
	}
	return p.error(status.IO, err)
}
