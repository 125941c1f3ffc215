package arrowmeta

import (
	"errors"
	"fmt"
	"io"

	"github.com/meshfeed/meshfeed/core/status"
)

// position locates a part of a file in the texts of errors.
type position struct {
	what   string // such as "record batch"
	number int    // -1 if there is only one
	offset int64  // in the file
}

func (p position) String() string {
	if p.number < 0 {
		return fmt.Sprintf("%s at byte %d", p.what, p.offset)
	}
	return fmt.Sprintf("%s %d at byte %d", p.what, p.number, p.offset)
}

func (p position) error(code status.Code, err error) *status.Error {
	e := status.Errorf(code, "arrowmeta", "%v: %w", p, err).With("offset", p.offset)
	if p.number >= 0 {
		e.With(p.what, p.number)
	}
	return e
}

// damaged returns the error for bytes that do not follow the format, or that are
// [Unsupported].
func (p position) damaged(err error) error {
	if _, ok := err.(Unsupported); ok {
		return p.error(status.Unsupported, err).WithHint("write it again, for example with pyarrow.ipc.new_file")
	}
	return p.error(status.DataLoss, err).WithHint("the data are damaged or cut short; write them again")
}

// unended returns the error for data without their end, which may not be written yet.
func (p position) unended(err error) error {
	return p.error(status.DataLoss, err).
		WithHint("it was cut short, or its writer was not closed: write or download it again")
}

// unread returns the error for bytes that could not be read.
func (p position) unread(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return p.damaged(errors.New("the data end here"))
	}
	return p.error(status.IO, err)
}
