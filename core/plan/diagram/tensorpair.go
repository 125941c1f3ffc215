package diagram

import (
	"fmt"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// TensorPair is a pair of layers z = f(x × a) × b that is split over devices. Matrix a is
// split by columns, and b by rows (Shoeybi et al., arXiv 1909.08053, section 3). With
// SequenceParallel, the rows of x and z are split as well (Korthikanti et al., arXiv
// 2205.05198, section 4.2.2).
type TensorPair struct {
	Devices          int
	Rows             int // rows of x and z: tokens
	Hidden           int // columns of x and z
	Inner            int // columns of a and rows of b
	Type             dtype.Type
	SequenceParallel bool
}

// Draw draws both layers with the parts of each device, and the collectives.
func (p TensorPair) Draw() (*Diagram, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	x := []int{p.Rows, p.Hidden}
	z := fmt.Sprintf("%s of %s", wording.Bytes(int64(p.Rows)*int64(p.Hidden)*int64(p.Type.Size())), p.Type)
	d := &Diagram{title: fmt.Sprintf("Tensor parallel pair on %s", wording.Count(int64(p.Devices), "device", "devices"))}
	split := p.column("y", "columns", p.Inner, false)
	input, output := p.column("x", "all", 0, false), p.column("z", "all", 0, false)
	first := flow{input, signs("×"), p.column("a", "columns", p.Inner, true), signs("="), split}
	second := flow{split, signs("×"), p.column("b", "rows", p.Inner, true), signs("="), p.column("z", "sums", -1, false), signs("all-", "reduce", "→"), output}
	moves := []string{
		fmt.Sprintf("Forward: an all-reduce of z, %s on every device. Backward: an all-reduce of the gradient of x, of the same size.", z),
		"A transformer layer has two such pairs, attention and feed-forward: 2 all-reduces forward and 2 backward.",
	}
	if p.SequenceParallel {
		input, output = p.column("x", "rows", p.Rows, false), p.column("z", "rows", p.Rows, false)
		first = append(flow{input, signs("all-", "gather", "→"), p.column("x", "all", 0, false)}, first[1:]...)
		second[5], second[6] = signs("reduce-", "scatter", "→"), output
		moves = []string{
			fmt.Sprintf("Forward: an all-gather of x and a reduce-scatter of z, %s each when whole. Backward: a reduce-scatter of the gradient of x and an all-gather of the gradient of z.", z),
			"A ring all-reduce is itself a reduce-scatter and an all-gather, so as many bytes move as without sequence parallelism.",
		}
	}
	label(first, p.Devices)
	label(second, p.Devices)
	about := fmt.Sprintf("x %s × a %s = y, then y × b %s = z %s.", wording.Shape(x), wording.Shape([]int{p.Hidden, p.Inner}), wording.Shape([]int{p.Inner, p.Hidden}), wording.Shape(x))
	d.about = fmt.Sprintf("%s. %s Each device holds %d columns of a and %d rows of b. %s", d.title, about, p.Inner/p.Devices, p.Inner/p.Devices, moves[0])
	d.add(note{muted, about}, space(10),
		note{bold, "1. Every device multiplies by its columns of a"}, space(2), first, space(6),
		note{bold, "2. Every device multiplies by its rows of b"}, space(2), second, space(6),
		note{plain, moves[0]}, note{muted, moves[1]})
	return d, nil
}

// check returns an error if a size is out of range, or does not divide.
func (p TensorPair) check() error {
	if err := limit("/devices", p.Devices, maxDevices); err != nil {
		return err
	}
	for _, n := range []struct {
		path string
		size int
	}{{"/rows", p.Rows}, {"/hidden", p.Hidden}, {"/inner", p.Inner}} {
		if err := limit(n.path, n.size, 1<<24); err != nil {
			return err
		}
	}
	if !p.Type.Valid() {
		return invalid("/dtype", "the element type is missing")
	}
	if err := divides("/inner", p.Devices, p.Inner, "columns of a"); err != nil {
		return err
	}
	if p.SequenceParallel {
		return divides("/rows", p.Devices, p.Rows, "rows")
	}
	return nil
}

// column makes a grid with a cell per device. A size above 0 is split over the devices.
// With 0, every device holds all. With -1, every device holds a part of a sum.
func (p TensorPair) column(name, parts string, size int, full bool) block {
	return stack([]string{name, parts}, p.Devices, func(i int) cell {
		switch {
		case size < 0:
			return cell{lines: []string{fmt.Sprintf("sum %d", i)}, hue: hue(i + 1)}
		case size == 0:
			return cell{lines: []string{"all"}}
		}
		return cell{lines: []string{span(i, p.Devices, size)}, hue: hue(i + 1), full: full}
	})
}

// label writes the names of the devices beside the rows of the first block.
func label(f flow, devices int) {
	f[0].rows = nil
	every(devices, func(i int) { f[0].rows = append(f[0].rows, device(i)) })
}
