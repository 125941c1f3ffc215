package main

/*
#include "internal.h"
*/
import "C"

import (
	"context"
	"errors"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// loaderInfo is the result of mf_loader_info.
type loaderInfo struct {
	Process       int         `json:"process"`
	StepsPerEpoch int64       `json:"steps_per_epoch"`
	Prefetch      int         `json:"prefetch"`
	Remainder     string      `json:"remainder"`
	BatchShape    []int       `json:"batch_shape"`
	BatchBytes    int64       `json:"batch_bytes"`
	Arrays        []arrayInfo `json:"arrays"`
	Combinable    int         `json:"combinable"`
	Windows       *windowInfo `json:"windows,omitempty"`
	Bad           string      `json:"bad,omitempty"`
}

// windowInfo describes an order with windows, with the keys of a measurements document.
type windowInfo struct {
	Blocks  int64 `json:"blocks"`
	Windows int64 `json:"windows"`
	Window  int64 `json:"window"`
	Records int64 `json:"records"`
	Bytes   int64 `json:"bytes"`
	Percent int64 `json:"variance_percent"`
}

type arrayInfo struct {
	array
	Field  string      `json:"field"`
	Target []any       `json:"target_spec"`
	Blocks []blockInfo `json:"blocks"`
}

// array holds the facts of an array that are the same in host memory and on devices.
type array struct {
	Name  string     `json:"name"`
	Kind  string     `json:"kind"`
	Type  dtype.Type `json:"dtype"`
	Shape []int      `json:"shape"`
	Spec  []any      `json:"spec"`
}

func arrayOf(a layout.Array) array {
	return array{a.Name, kindNames[a.Kind], a.Type, append([]int{}, a.Shape...), a.Delivered.Spec().Entries()}
}

type blockInfo struct {
	Tensor  int            `json:"tensor"`
	Offset  int            `json:"offset"`
	Bytes   int            `json:"bytes"`
	Shape   []int          `json:"shape"`
	Index   sharding.Index `json:"index"`
	Holders []int          `json:"holders"`
}

var kindNames = map[layout.Kind]string{
	layout.Data: "data", layout.Mask: "mask", layout.Key: "key", layout.Record: "record", layout.Static: "static",
}

// describe returns the facts that all batches of a loader share.
func describe(l *loader.Loader, memory *pool) loaderInfo {
	lay := l.Layout()
	info := loaderInfo{
		Process: l.Process(), StepsPerEpoch: l.StepsPerEpoch(), Prefetch: l.Prefetch(), Remainder: lay.Remainder(),
		BatchShape: lay.BatchShape(), BatchBytes: memory.bytes(), Arrays: describeArrays(lay, l.Process(), memory), Combinable: l.Combinable(),
	}
	if q := l.Windows(); q.Blocks > 0 {
		w := windowInfo(q)
		info.Windows = &w
	}
	if bad, ok := errors.AsType[*status.Error](l.Stats().FirstBad); ok {
		info.Bad = bad.Msg
	}
	return info
}

// describeArrays describes the arrays of a layout, and the blocks that a process holds.
func describeArrays(l *layout.Layout, process int, memory *pool) []arrayInfo {
	out := []arrayInfo{}
	for _, a := range l.Arrays() {
		out = append(out, arrayInfo{arrayOf(a), a.Field, a.Sharding.Spec().Entries(), []blockInfo{}})
	}
	for i, b := range l.Process(process).Blocks {
		a := &out[b.Array]
		a.Blocks = append(a.Blocks, blockInfo{
			Tensor: i, Offset: memory.offsets[i], Bytes: memory.sizes[i],
			Shape: append([]int{}, b.Index.Shape()...), Index: b.Index, Holders: b.Holders,
		})
	}
	return out
}

//export mfgo_loader_info
func mfgo_loader_info(h C.uint64_t, out *C.mf_bytes, e *C.mf_error) C.mf_status {
	return withLoader(h, e, func(o *loaderObject, l *loader.Loader) error { return writeJSON(out, describe(l, o.pool)) })
}

// component is a node of the tree that mf_loader_components returns.
type component struct {
	Label string      `json:"label"`
	Name  string      `json:"name,omitempty"`
	Stamp string      `json:"stamp,omitempty"`
	Hash  string      `json:"hash"`
	Below []component `json:"below,omitempty"`
}

// maxComponents bounds the tree, which each process of a job may publish. It has room for 1,000 files.
const maxComponents = 2048

func componentOf(c source.Component) component {
	out := component{Label: c.Label, Name: c.Name, Stamp: c.Stamp, Hash: c.Hash.String()[:16]}
	for _, below := range c.Below {
		out.Below = append(out.Below, componentOf(below))
	}
	return out
}

//export mfgo_loader_components
func mfgo_loader_components(h C.uint64_t, out *C.mf_bytes, e *C.mf_error) C.mf_status {
	return with(h, e, func(ctx context.Context, o *loaderObject) error {
		src, err := o.dataset.Wait(ctx)
		if err != nil {
			return err
		}
		root, err := source.ComponentsOf(ctx, src)
		if err != nil {
			return err
		}
		root.Cut(maxComponents)
		return writeJSON(out, componentOf(root))
	})
}
