package main

/*
#include "internal.h"
*/
import "C"

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/status"
)

// hashFiles returns the hash of all bytes of the files. A view has the hash of all
// files of the datasets below it.
func (d *dataset) hashFiles(ctx context.Context) (arrowio.Hash, error) {
	if len(d.parents) == 1 {
		return d.parents[0].hashFiles(ctx)
	}
	if len(d.parents) > 1 {
		return once(ctx, d, &d.hash, d.hashParents)
	}
	src, err := d.Wait(ctx)
	if err != nil {
		return arrowio.Hash{}, err
	}
	files, ok := src.(*arrowio.Dataset)
	if !ok {
		return arrowio.Hash{}, status.New(status.Unsupported, "capi", "the dataset is in memory and has no files to hash").
			WithHint("the fingerprint covers data in memory")
	}
	return once(ctx, d, &d.hash, files.Hash)
}

// hashParents returns the hash of the files of several datasets, in order.
func (d *dataset) hashParents(ctx context.Context) (all arrowio.Hash, err error) {
	h := sha256.New()
	for _, p := range d.parents {
		one, err := p.hashFiles(ctx)
		if err != nil {
			return arrowio.Hash{}, err
		}
		all.Files = append(all.Files, one.Files...)
	}
	for _, sum := range all.Files {
		h.Write(sum[:])
	}
	h.Sum(all.Sum[:0])
	return all, nil
}

// hashInfo is the result of mf_dataset_hash.
type hashInfo struct {
	SHA256 string   `json:"sha256"`
	Files  []string `json:"files"`
}

func hashInfoOf(h arrowio.Hash) hashInfo {
	out := hashInfo{SHA256: hex.EncodeToString(h.Sum[:])}
	for _, sum := range h.Files {
		out.Files = append(out.Files, hex.EncodeToString(sum[:]))
	}
	return out
}

//export mfgo_dataset_hash
func mfgo_dataset_hash(h C.uint64_t, ms C.int64_t, out *C.mf_bytes, e *C.mf_error) C.mf_status {
	return with(h, e, func(ctx context.Context, d *dataset) error {
		ctx, cancel := within(ctx, ms)
		defer cancel()
		hash, err := d.hashFiles(ctx)
		if err != nil {
			return err
		}
		return writeJSON(out, hashInfoOf(hash))
	})
}
