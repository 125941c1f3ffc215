// Package tar reads archives of WebDataset as a format of a dataset. Files whose names are equal up to
// the first dot, and which follow each other, are a record. The rest of a name is a field, with the
// bytes of the file as a ragged row. The field "__key__" has the name up to the dot.
//
// Nothing is decoded: a field is stored as views, which say where the bytes of a file are in the
// archive. The archive has no views, so they are made when it is opened, and lie in memory behind its
// bytes ([Shard]). A unit is a run of records of about 8 MiB.
package tar

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

const (
	unitBytes = 8 << 20

	// maxFields bounds the fields, because each takes memory for every record.
	maxFields = 256
)

// Key is the name of the field with the keys of the records.
const Key = "__key__"

// record has the members of a record by field. A record without a file has a nil member.
type record struct {
	key     string
	members []*Member
}

// Shard is an archive as a blob, with the views of its records behind it.
type Shard struct {
	format.Tailed
	fields []string // after the field with the keys
	units  []unit
	digest [32]byte
}

// NewShard returns the archive with its members. The error is DataLoss if two files of a record have one
// field.
func NewShard(b blob.Blob, members []Member) (*Shard, error) {
	s := &Shard{Tailed: format.Tailed{Blob: b}, digest: digestOf(members)}
	records, err := s.group(members)
	if err != nil {
		return nil, err
	}
	for len(records) > 0 {
		n, start, end := 0, int64(math.MaxInt64), int64(0)
		for n < len(records) {
			from, to := records[n].extent()
			if n > 0 && max(end, to)-min(start, from) > unitBytes {
				break
			}
			start, end, n = min(start, from), max(end, to), n+1
		}
		if end-start > math.MaxInt32 {
			return nil, refused(records[0].key, "has files of more than 2 GiB together", "store smaller values")
		}
		s.add(records[:n], resident.Extent{Offset: start, Length: end - start})
		records = records[n:]
	}
	return s, nil
}

func digestOf(members []Member) [32]byte {
	return sha256.Sum256(AppendIndex([]byte("tar 1\n"), members))
}

// group returns the records of the members.
func (s *Shard) group(members []Member) (list []record, err error) {
	places := map[string]int{}
	for i := range members {
		key, field, ok := split(members[i].Name)
		if !ok {
			continue
		}
		if len(list) == 0 || list[len(list)-1].key != key {
			list = append(list, record{key: key})
		}
		place, known := places[field]
		if !known {
			if place = len(s.fields); place == maxFields {
				return nil, status.Errorf(status.Unsupported, "arrowio", "the names of its files have more than %d different endings, up to %q", maxFields, field).
					WithHint("WebDataset names the files of a record equally up to the first dot")
			}
			places[field], s.fields = place, append(s.fields, field)
		}
		r := &list[len(list)-1]
		for len(r.members) <= place {
			r.members = append(r.members, nil)
		}
		if r.members[place] != nil {
			return nil, status.Errorf(status.DataLoss, "arrowio", "the record %q has two files for the field %q", key, field).
				WithHint("write the archive with one of them")
		}
		r.members[place] = &members[i]
	}
	if len(list) == 0 {
		return nil, status.New(status.Unsupported, "arrowio", "no file in the archive has a name with an ending").
			WithHint("WebDataset names the files of a record as in 0001.jpg and 0001.cls")
	}
	return list, nil
}

// extent returns where the files of a record are.
func (r *record) extent() (from, to int64) {
	from = math.MaxInt64
	for _, m := range r.members {
		if m != nil {
			from, to = min(from, m.Offset), max(to, m.Offset+m.Size)
		}
	}
	return from, to
}

// add adds a unit, with views of its keys and files.
func (s *Shard) add(records []record, files resident.Extent) {
	u := unit{rows: int64(len(records)), files: files, valid: make([]int64, len(s.fields)+1)}
	start := s.Size()
	var keys []byte
	u.keys.At = start
	for i := range records {
		keys = append(keys, records[i].key...)
	}
	u.keys.Bytes, s.Tail = int64(len(keys)), append(s.Tail, keys...)
	u.views, u.valid[0] = s.Size(), -1
	at := int64(0)
	for i := range records {
		s.view([]byte(records[i].key), int64(len(records[i].key)), at)
		at += int64(len(records[i].key))
	}
	bitmaps := make([][]byte, len(s.fields))
	for k := range s.fields {
		bitmap, nulls := make([]byte, (len(records)+7)/8), false
		for i := range records {
			var m *Member
			if k < len(records[i].members) {
				m = records[i].members[k]
			}
			if m == nil {
				nulls = true
				s.view(nil, 0, 0)
				continue
			}
			bitmap[i/8] |= 1 << (i % 8)
			s.view(m.Short, m.Size, m.Offset-files.Offset)
		}
		if nulls {
			bitmaps[k] = bitmap
		}
	}
	for k, bitmap := range bitmaps {
		u.valid[k+1] = -1
		if bitmap != nil {
			u.valid[k+1], s.Tail = s.Size(), append(s.Tail, bitmap...)
		}
	}
	s.units = append(s.units, u)
}

// view appends a view: the length of a value in 4 bytes, then the value if it is short. After the length
// of a longer value come its first 4 bytes, which nothing here reads, the number of its buffer, and the
// offset there.
func (s *Shard) view(short []byte, size, at int64) {
	var v [16]byte
	binary.LittleEndian.PutUint32(v[:], uint32(size))
	if size <= inView {
		copy(v[4:], short)
	} else {
		binary.LittleEndian.PutUint32(v[12:], uint32(at))
	}
	s.Tail = append(s.Tail, v[:]...)
}

// AsBlob returns the shard as a blob, with a version if its archive has one.
func (s *Shard) AsBlob() blob.Blob {
	if _, versioned := s.Blob.(blob.Versioned); versioned {
		return versionedShard{s}
	}
	return s
}

// versionedShard is a shard of an archive with a version.
type versionedShard struct{ *Shard }

// Version implements blob.Versioned.
func (s versionedShard) Version() string { return s.Blob.(blob.Versioned).Version() }

// ShardOf returns the shard that a file reads from, or nil.
func ShardOf(content *resident.File) *Shard {
	switch s := content.Blob.(type) {
	case *Shard:
		return s
	case versionedShard:
		return s.Shard
	}
	return nil
}

// Open returns the contents of a file with the shard.
func (s *Shard) Open(content *resident.File) format.Contents {
	c := &file{content: content, units: s.units}
	schema := &arrowmeta.Schema{Fields: []arrowmeta.Field{{Name: Key, Type: arrowmeta.Type{Kind: arrowmeta.StringView}}}}
	for _, name := range s.fields {
		schema.Fields = append(schema.Fields, arrowmeta.Field{Name: name, Nullable: true, Type: arrowmeta.Type{Kind: arrowmeta.BinaryView}})
	}
	c.Facts = format.Metadata{Format: "tar", Schema: schema, Digest: s.digest}
	for range schema.Fields {
		c.Facts.Located = append(c.Facts.Located, true)
	}
	for _, u := range s.units {
		c.Facts.Units = append(c.Facts.Units, u.files)
	}
	return c
}

// file is the contents of an archive.
type file struct {
	format.Plain
	content *resident.File
	units   []unit
}

// Scan implements format.Contents. It reads nothing.
func (c *file) Scan(_ context.Context, first, last int, visit func(i int, u format.Unit) error) error {
	return format.Visit(first, last, func(i int) format.Unit { return &c.units[i] }, visit)
}

// Verify implements format.Contents. It reads the headers, which have checksums, and then all bytes.
func (c *file) Verify(ctx context.Context, _ []int, progress func(bytes int64)) error {
	members, err := Members(ctx, ShardOf(c.content).Blob)
	if err != nil {
		return err
	}
	if digestOf(members) != c.Facts.Digest {
		return fmt.Errorf("the files in the archive are not those that it had when it was opened")
	}
	return format.ReadAll(ctx, c.content, progress)
}

// unit is a run of records. It implements format.Unit.
type unit struct {
	rows  int64
	files resident.Extent
	keys  buffers.Extent
	views int64   // where the views of the keys begin; those of the other fields follow
	valid []int64 // by column: where its bitmap is, or -1
}

func (u *unit) Rows() int64 { return u.rows }

func (u *unit) Nulls(column int) buffers.Nulls {
	return buffers.Nulls{May: u.valid[column] >= 0, Has: u.valid[column] >= 0}
}

func (*unit) Encoding() string { return "" }

func (u *unit) SetPositions(to *buffers.Column, batch, column int) {
	p, data := &to.Planes[0], buffers.Extent{At: u.files.Offset, Bytes: u.files.Length}
	if column == 0 {
		data = u.keys
	}
	p.Data[batch] = u.views + 16*u.rows*int64(column)
	p.Buffers[batch] = append(p.Buffers[batch], data)
	if p.Valid != nil {
		p.Valid[batch] = u.valid[column]
	}
}

func (*unit) Uneven(int, *arrowtype.Field) (string, error) { return "", nil }
