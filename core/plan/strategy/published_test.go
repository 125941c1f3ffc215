package strategy_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/plan/strategy"
)

// Memory per device in GB [Rajbhandari et al., arXiv 1910.02054, table 1]: for a number
// of parameters, the three stages of ZeRO at data-parallel degrees from 1 to 1024.
var zeroTable = []struct {
	parameters int64
	rows       string // degree, Pos, Pos+g, Pos+g+p
}{
	{7_500_000_000, `
		1    120  120  120
		4    52.5 41.3 30
		16   35.6 21.6 7.5
		64   31.4 16.6 1.88
		256  30.4 15.4 0.47
		1024 30.1 15.1 0.12`},
	{128_000_000_000, `
		1    2048 2048 2048
		4    896  704  512
		16   608  368  128
		64   536  284  32
		256  518  263  8
		1024 513  257  2`},
	{1_000_000_000_000, `
		1    16000 16000 16000
		4    7000  5500  4000
		16   4750  2875  1000
		64   4187  2218  250
		256  4046  2054  62.5
		1024 4011  2013  15.6`},
}

// The paper rounds some numbers of its table and cuts others, so each may differ by less
// than one unit of its last digit.
func TestMemoryOfZeRO(t *testing.T) {
	for _, model := range zeroTable {
		for row := range strings.SplitSeq(strings.TrimSpace(model.rows), "\n") {
			cells := strings.Fields(row)
			degree, err := strconv.Atoi(cells[0])
			if err != nil {
				t.Fatal(err)
			}
			for stage, cell := range cells[1:] {
				got, want := stateBytes(t, model.parameters, degree, stage+1), number(t, cell)
				unit := 1.0
				if _, decimals, found := strings.Cut(cell, "."); found {
					unit = math.Pow10(-len(decimals))
				}
				if math.Abs(float64(got)/1e9-want) >= unit {
					t.Errorf("%d parameters, degree %d, stage %d: %d bytes, the paper has %s GB", model.parameters, degree, stage+1, got, cell)
				}
			}
		}
	}
}

// stateBytes returns the bytes of weights, gradients and optimizer with a stage of ZeRO.
// Stage 3 is the axis fsdp.
func stateBytes(t *testing.T, parameters int64, degree, stage int) int64 {
	t.Helper()
	d := &strategy.Document{
		Model:    strategy.Model{Parameters: parameters},
		Training: strategy.Training{Batch: int64(degree)},
		Cluster:  strategy.Cluster{Devices: degree, PerNode: 1, MemoryBytes: 80_000_000_000},
		Search:   fixed(map[string]int{strategy.Data: degree}),
	}
	d.Search.ZeRO = []int{stage}
	if stage == 3 {
		d.Search = fixed(map[string]int{strategy.FSDP: degree})
	}
	for _, c := range advise(t, d).Candidates {
		if degree == 1 || stage == 3 || c.ZeRO == stage {
			return c.Memory.Weights + c.Memory.Gradients + c.Memory.Optimizer
		}
	}
	t.Fatalf("no candidate of degree %d and stage %d", degree, stage)
	return 0
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
