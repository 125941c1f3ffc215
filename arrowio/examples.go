package arrowio

import (
	"context"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/files"
	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/arrowio/internal/format/tfrecord"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/arrowio/internal/units"
)

// hasExamples reports whether a file is one of TFRecord, by its name or its first bytes.
func hasExamples(ctx context.Context, content *resident.File) (bool, error) {
	head := make([]byte, min(format.EdgeBytes, content.Size()))
	if err := content.ReadFull(ctx, head, 0); err != nil {
		return false, err
	}
	return len(head) > 0 && files.IsRecords(content.Name()) || tfrecord.Recognize(head), nil
}

// hasGzip reports whether a file of TFRecord is compressed, although its name does not say so: programs that
// compress it often keep the name. A file that cannot be read is not.
func hasGzip(ctx context.Context, b blob.Blob) bool {
	head := make([]byte, format.EdgeBytes)
	return files.IsRecords(b.Name()) && b.Size() > int64(len(head)) && blob.ReadFull(ctx, b, head, 0) == nil &&
		string(head[:2]) == "\x1f\x8b" && !tfrecord.Recognize(head)
}

// found opens a file of TFRecord or JSON Lines. The contents of other files are nil.
func (x indexer) found(ctx context.Context, content *resident.File) (format.Contents, error) {
	switch examples, err := hasExamples(ctx, content); {
	case err != nil:
		return nil, err
	case examples:
		return x.examples(ctx, content)
	}
	if lines, err := x.recognizes(ctx, content); err != nil || !lines {
		return nil, err
	}
	return x.open(ctx, content)
}

// examples opens a file of TFRecord.
func (x indexer) examples(ctx context.Context, content *resident.File) (format.Contents, error) {
	var found *tfrecord.Index
	err := x.index(ctx, content.Blob, tfrecord.IndexName, func(index []byte) bool {
		found = tfrecord.ReadIndex(index, content.Size())
		return found != nil
	}, func() (index []byte, err error) {
		if found, err = tfrecord.Find(ctx, content); err != nil {
			return nil, err
		}
		return found.Append()
	})
	if err != nil {
		return nil, err
	}
	return tfrecord.Open(content, found, x.columns)
}

// agree gives all files of TFRecord the same columns.
func agree(list []*units.File) error {
	var examples []*tfrecord.File
	for _, f := range list {
		if c, ok := f.Contents.(*tfrecord.File); ok {
			examples = append(examples, c)
		}
	}
	return tfrecord.Agree(examples)
}
