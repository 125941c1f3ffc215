package view

import (
	"context"
	"errors"
	"sync"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/source/cut"
	"github.com/meshfeed/meshfeed/internal/block"
)

// maker is a view that makes the rows of some fields. The other fields are stored in the
// dataset below.
type maker interface {
	source.Source

	// made reports whether the view makes the rows of a field.
	made(field int) bool

	// stored returns the number in the dataset below of a field that is not made.
	stored(field int) int
}

// newPartly returns a gatherer of parts of a view. The gatherer below writes the blocks of
// the stored fields in place. Blocks of the others are cut from the rows of the view's reader.
func (b *base) newPartly(v maker, parts []source.Part) (source.Gatherer, error) {
	if err := b.calls.Enter(); err != nil {
		return nil, err
	}
	defer b.calls.Leave()
	set, err := block.Compile(b.schema, parts, nil)
	if err != nil {
		return nil, err
	}
	g := &partly{view: b, set: set, parts: make([]partlyPart, len(parts))}
	var made, stored []source.Part
	var fields []int // that are made
	for i, p := range parts {
		if v.made(p.Field) {
			g.parts[i] = partlyPart{true, len(made)}
			made, fields = append(made, p), append(fields, p.Field)
			continue
		}
		g.parts[i] = partlyPart{false, len(stored)}
		p.Field = v.stored(p.Field)
		stored = append(stored, p)
	}
	if g.stored, err = b.below[0].Gatherer(stored); err != nil {
		return nil, err
	}
	if len(made) == 0 {
		return g, nil
	}
	r, err := v.Reader(fields)
	if err != nil {
		_ = g.stored.Close()
		return nil, err
	}
	if g.made, err = cut.Gatherer(r, b.schema, made); err != nil {
		_ = r.Close()
		_ = g.stored.Close()
		return nil, err
	}
	return g, nil
}

// partly gathers the fields that a view makes, and those that it passes through.
type partly struct {
	view   *base
	set    *block.Set
	parts  []partlyPart
	stored source.Gatherer
	made   source.Gatherer // nil if no part needs it
	pool   sync.Pool       // of *[2][]source.Job
}

// partlyPart is a part of the view: its number in one of the two gatherers.
type partlyPart struct {
	made   bool
	number int
}

// Gather implements source.Gatherer.
func (g *partly) Gather(ctx context.Context, records []int64, jobs []source.Job) error {
	return g.view.gather(ctx, g.set, records, jobs, func(ctx context.Context) error {
		list, ok := g.pool.Get().(*[2][]source.Job)
		if !ok {
			list = new([2][]source.Job)
		}
		defer g.pool.Put(list)
		defer func() {
			for i := range list {
				clear(list[i]) // they refer to the caller's memory
				list[i] = list[i][:0]
			}
		}()
		for _, j := range jobs {
			part := g.parts[j.Part]
			j.Part = part.number
			list[flag(part.made)] = append(list[flag(part.made)], j)
		}
		if err := g.stored.Gather(ctx, records, list[0]); err != nil || len(list[1]) == 0 {
			return err
		}
		return g.made.Gather(ctx, records, list[1])
	})
}

// Ahead implements source.Gatherer.
func (g *partly) Ahead(records []int64) {
	g.stored.Ahead(records)
	if g.made != nil {
		g.made.Ahead(records)
	}
}

// Close implements source.Gatherer.
func (g *partly) Close() error {
	err := g.stored.Close()
	if g.made != nil {
		err = errors.Join(err, g.made.Close())
	}
	return err
}
