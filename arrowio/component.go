package arrowio

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/meshfeed/meshfeed/core/source"
)

// components implements Components of [source.Facts]. The files come twice: first with their sizes and
// metadata, then with their bytes. The fingerprint takes samples at positions that depend
// on all metadata, so bytes are comparable only if all metadata are equal.
func (d *Dataset) components(ctx context.Context) (root source.Component, err error) {
	if root.Hash, err = d.Fingerprint(ctx); err != nil {
		return root, err
	}
	described, stored := source.Component{Label: "files"}, source.Component{Label: "files", Hash: root.Hash}
	h := sha256.New()
	d.toFingerprint().WriteFacts(h)
	copy(described.Hash[:], h.Sum(nil))
	for i, f := range d.files.List {
		add := func(to *source.Component, label, facts string) {
			c := source.Component{Label: fmt.Sprintf("%s of file %d", label, i), Name: f.Base}
			sum := sha256.Sum256([]byte(facts))
			copy(c.Hash[:], sum[:])
			to.Below = append(to.Below, c)
		}
		rows := make([]int64, len(f.Units)) // some may be empty
		for k := range rows {
			rows[k] = d.files.Index.Rows(f.First + k)
		}
		batches := fmt.Sprint(rows)
		keys := fmt.Sprintf("%q", fmt.Sprint(f.Partition))
		metadata := fmt.Sprintf("%d %x", f.Content.Size(), f.Digest)
		add(&described, "bytes", batches+keys+metadata)
		own := &described.Below[i]
		add(own, "directory keys", keys)
		add(own, "record batches", batches)
		add(own, "bytes", metadata)
		own.Below[2].Stamp = f.Stamp
		add(&stored, "bytes", "")
		stored.Below[i].Hash, stored.Below[i].Stamp = d.fingerprint.bytes[i], f.Stamp
	}
	root.Label, root.Below = "files", []source.Component{source.SchemaComponent(d.table.Schema), described, stored}
	return root, nil
}
