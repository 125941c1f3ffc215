package format

import (
	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// Encoded is the header of a unit without positions of buffers: only decoding tells where its values
// are. It implements Unit.
type Encoded struct {
	Records  int64
	Elements int64  // the most that a level has; 0 if no caller needs the lengths of lists
	As       string // its encoding
	NullsOf  func(column int) buffers.Nulls
}

// Rows implements Unit.
func (u Encoded) Rows() int64 { return u.Records }

// Nulls implements Unit.
func (u Encoded) Nulls(column int) buffers.Nulls { return u.NullsOf(column) }

// Encoding implements Unit.
func (u Encoded) Encoding() string { return u.As }

// SetPositions implements Unit. It sets no positions, because only decoded units are read. A decoding
// counts the elements of a level.
func (u Encoded) SetPositions(to *buffers.Column, batch, _ int) {
	for n := range to.Planes {
		p := &to.Planes[n]
		if p.Valid != nil {
			p.Valid[batch] = -1
		}
		if p.Length != nil {
			p.Length[batch] = u.Elements
		}
	}
}

// Uneven implements Unit.
func (Encoded) Uneven(int, *arrowtype.Field) (string, error) { return "", nil }
