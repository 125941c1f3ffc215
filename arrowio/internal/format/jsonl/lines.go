package jsonl

import (
	"bytes"
	"context"

	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/core/status"
)

const (
	// unitBytes is about how many bytes of text a unit has. A gather parses a whole unit to read
	// one row.
	unitBytes = 1 << 20

	// maxLine bounds a line, which is parsed in memory.
	maxLine = 64 << 20

	// pieceBytes is how many bytes are read at a time to count lines.
	pieceBytes = 4 << 20
)

// Count divides a text into units. It reads all of the text, and parses nothing.
func Count(ctx context.Context, content *resident.File) ([]format.Run, error) {
	c := counter{}
	piece := make([]byte, min(pieceBytes, content.Size()))
	for at := int64(0); at < content.Size(); at += int64(len(piece)) {
		piece = piece[:min(int64(len(piece)), content.Size()-at)]
		if err := content.ReadFull(ctx, piece, at); err != nil {
			return nil, err
		}
		text := piece
		if at == 0 {
			text = bytes.TrimPrefix(text, []byte(bom))
			c.at = int64(len(piece) - len(text))
			c.lineStart = c.at
		}
		if err := c.add(text); err != nil {
			return nil, err
		}
	}
	if c.at > c.lineStart {
		c.endLine()
	}
	if c.at > c.start() {
		c.endUnit()
	}
	for _, l := range c.units {
		if l.Records > 0 {
			return c.units, nil
		}
	}
	return nil, status.New(status.DataLoss, "arrowio", "all lines are empty").WithHint("write one object per line")
}

// counter counts the lines of a text.
type counter struct {
	units     []format.Run
	unit      format.Run
	at        int64 // bytes so far
	lineStart int64
	filled    bool // the line has more than spaces
}

// add counts the lines that end in a piece of the text.
func (c *counter) add(text []byte) error {
	for len(text) > 0 {
		n := bytes.IndexByte(text, '\n')
		ends := n >= 0
		if !ends {
			n = len(text) - 1
		}
		c.filled = c.filled || len(bytes.TrimLeft(text[:n+1], " \t\r\n")) > 0
		c.at, text = c.at+int64(n+1), text[n+1:]
		if c.at-c.lineStart > maxLine {
			return status.Errorf(status.Unsupported, "arrowio", "line %d has more than %d bytes", c.unit.Number+1, maxLine).
				WithHint("write one object per line; store large values as arrays in Arrow or Parquet").With("line", c.unit.Number+1)
		}
		if ends {
			c.endLine()
		}
	}
	return nil
}

func (c *counter) endLine() {
	c.unit.Number++
	if c.filled {
		c.unit.Records++
	}
	c.lineStart, c.filled = c.at, false
	if c.at-c.start() >= unitBytes || c.unit.Records == format.MaxRunRecords {
		c.endUnit()
	}
}

// start returns the first byte of the unit.
func (c *counter) start() int64 {
	if len(c.units) == 0 {
		return 0
	}
	return c.units[len(c.units)-1].End
}

func (c *counter) endUnit() {
	c.unit.End = c.at
	c.units = append(c.units, c.unit)
	c.unit.Records = 0
}

// IndexName names the index in a cache. It changes with what Count returns.
const IndexName = "lines 1"

// ReadIndex returns the units of a text of size bytes. ok is false if they do not fit it.
func ReadIndex(b []byte, size int64) (units []format.Run, ok bool) {
	return format.ReadRuns(b, size, maxLine+unitBytes)
}
