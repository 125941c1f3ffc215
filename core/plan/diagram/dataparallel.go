package diagram

import (
	"fmt"

	"github.com/meshfeed/meshfeed/internal/wording"
)

// DataParallel is the split of a batch over devices that all hold the whole model.
type DataParallel struct{ Rows, Devices int }

// Limits of numbers in a [Spec].
const (
	maxDevices = 1 << 20
	maxSize    = 1 << 40
	maxSide    = 1 << 28 // side of a matrix, so that its bytes fit int64
)

// Draw draws the rows of each device, and what the devices exchange.
func (p DataParallel) Draw() (*Diagram, error) {
	if err := limit("/devices", p.Devices, maxDevices); err != nil {
		return nil, err
	}
	if err := limit("/rows", p.Rows, maxSize); err != nil {
		return nil, err
	}
	if err := divides("/rows", p.Devices, p.Rows, "rows"); err != nil {
		return nil, err
	}
	devices := wording.Count(int64(p.Devices), "device", "devices")
	d := &Diagram{title: fmt.Sprintf("Data parallel: %s rows on %s", wording.Thousands(int64(p.Rows)), devices)}
	d.about = fmt.Sprintf("%s. Each device holds %s rows of the batch and all weights. An all-reduce adds the gradients of all devices.", d.title, wording.Thousands(int64(p.Rows/p.Devices)))
	hues := func(i int) hue { return hue(i + 1) }
	batch := stack([]string{"batch"}, p.Devices, func(i int) cell {
		return cell{lines: []string{span(i, p.Devices, p.Rows)}, hue: hues(i), full: true}
	})
	every(p.Devices, func(i int) { batch.rows = append(batch.rows, device(i)) })
	weights := stack([]string{"weights"}, p.Devices, func(int) cell { return cell{lines: []string{"all"}} })
	gradients := stack([]string{"gradients"}, p.Devices, func(i int) cell {
		return cell{lines: []string{"of " + span(i, p.Devices, p.Rows)}, hue: hues(i)}
	})
	mean := stack([]string{"gradients"}, p.Devices, func(int) cell { return cell{lines: []string{"of all rows"}} })
	d.add(
		note{muted, fmt.Sprintf("Every device holds all weights and %s of the batch.", wording.Count(int64(p.Rows/p.Devices), "row", "rows"))},
		space(8),
		flow{batch, signs("×"), weights, signs("→"), gradients, signs("all-", "reduce", "→"), mean},
		space(4),
		note{muted, "The all-reduce runs once per step. All devices then update their weights alike."},
	)
	return d, nil
}
