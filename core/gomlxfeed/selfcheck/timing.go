package selfcheck

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/core/tensors/dtensor"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/gomlxfeed"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/source"
)

// Rates holds the speed of batches of one kind. Each batch is on the devices and
// released before the next one is requested.
type Rates struct {
	Case       string  `json:"case"`
	BatchRows  int     `json:"batch_rows"`
	BatchBytes int     `json:"batch_bytes"`
	P50        float64 `json:"p50_seconds"` // of a batch, with a prefetch of 2
	P99        float64 `json:"p99_seconds"`

	// Batches per second: the median of the rounds.
	Meshfeed float64 `json:"meshfeed"` // with a prefetch of 2
	Single   float64 `json:"single"`   // without prefetch: the same work as ByHand
	ByHand   float64 `json:"by_hand"`  // gather, FromRaw per device, a dtensor, Finalize
	Put      float64 `json:"put"`      // ByHand without the gather
	Copy     float64 `json:"copy"`     // a copy of the bytes on the host
}

// Steps holds the time of a step with input. A step is a pause of the caller, which
// stands for the time that a device computes.
type Steps struct {
	Case  string    `json:"case"`
	Pause float64   `json:"pause_seconds"`
	Alone float64   `json:"alone_seconds"` // measured step without input
	Ahead []float64 `json:"ahead_seconds"` // step with input, by prefetch: 0, 1, 2
}

// timed describes the data of one measurement.
type timed struct {
	name  string
	typ   dtype.Type
	shape []int
	batch int // rows of a batch, rounded up to a multiple of the number of devices
	rows  int // rows of the dataset
}

var cases = []timed{
	{"images, uint8 [224, 224, 3]", dtype.Uint8, []int{224, 224, 3}, 128, 512},
	{"tokens, int32 [2048]", dtype.Int32, []int{2048}, 256, 8192},
	{"features, float32 [16]", dtype.Float32, []int{16}, 1024, 65536},
}

var pauses = []time.Duration{0, time.Millisecond, 10 * time.Millisecond}

const (
	rounds      = 5
	prefetch    = 2 // the prefetch in Rates
	maxPrefetch = 2 // the largest prefetch in Steps
	minBatches  = 5 // batches of a run, even if it then takes longer
	loops       = 5 // number of loops that Rates compares
)

// measure adds the measurements to the report.
func (s *session) measure(ctx context.Context, r *Report) error {
	runs := len(cases)*loops + len(pauses)*(maxPrefetch+2)
	each := s.o.Duration / time.Duration(runs*(rounds+1))
	var first *bench
	for _, c := range cases {
		s.o.Progress("speed of " + c.name)
		b, err := s.bench(c)
		if err != nil {
			return err
		}
		rates, err := b.rates(ctx, each)
		if err != nil {
			return err
		}
		r.Rates = append(r.Rates, rates)
		if first == nil {
			first = b
		}
	}
	s.o.Progress("steps with " + cases[0].name)
	steps, err := first.steps(ctx, each)
	r.Steps = steps
	return err
}

// bench measures one case on the devices.
type bench struct {
	*session
	timed
	workload *workload
}

func (s *session) bench(c timed) (*bench, error) {
	n := s.d.Num()
	c.batch, c.rows = s.amount(c.batch), s.amount(c.rows)
	c.batch = (c.batch + n - 1) / n * n
	c.rows = max(c.rows, 2*c.batch)
	f := newField(s.random, "x", c.typ, c.rows, c.shape...)
	w, err := newWorkload(s.oneAxis(), layout.BatchSpec{Size: []int{c.batch}}, []field{f}, []sharding.PartitionSpec{sharding.P("data")})
	return &bench{s, c, w}, err
}

func (b *bench) bytes() int { return len(b.workload.fields["x"].bytes) / b.rows * b.batch }

// loop delivers and releases one batch per call of step.
type loop struct {
	step func() error
	end  func() error
}

// placed returns the loop of a program that uses meshfeed.
func (b *bench) placed(ctx context.Context, prefetch int) (loop, error) {
	if prefetch == 0 {
		prefetch = -1 // 0 would be the default
	}
	f, err := b.open(b.workload, loader.Options{Epochs: -1, Prefetch: prefetch})
	if err != nil {
		return loop{}, err
	}
	next, stop := iter.Pull2(gomlxfeed.Placed(ctx, f.Loader, b.d))
	step := func() error {
		batch, err, _ := next()
		if err == nil {
			batch.Release()
		}
		return err
	}
	return loop{step, func() error { stop(); return f.close() }}, nil
}

// byHand returns the loop of a program without meshfeed. It gathers shuffled rows into
// host memory, and creates a tensor on every device and a dtensor over them.
func (b *bench) byHand(ctx context.Context) (loop, error) {
	boxes := make([][2]int, len(b.shape))
	for i, size := range b.shape {
		boxes[i] = [2]int{0, size}
	}
	g, err := b.workload.source.Gatherer([]source.Part{{Boxes: [][][2]int{boxes}}})
	if err != nil {
		return loop{}, err
	}
	host := make([]byte, b.bytes())
	jobs := []source.Job{{Rows: [2]int{0, b.batch}, Dst: host}}
	records, at := b.random.Perm(b.rows), 0
	order := make([]int64, len(records))
	for i, record := range records {
		order[i] = int64(record)
	}
	put, err := b.put(host)
	step := func() error {
		if at+b.batch > len(order) {
			at = 0
		}
		if err := g.Gather(ctx, order[at:at+b.batch], jobs); err != nil {
			return err
		}
		at += b.batch
		return put()
	}
	return loop{step, g.Close}, err
}

// put returns a function that transfers host memory to the devices as one array
// and frees the array.
func (b *bench) put(host []byte) (func() error, error) {
	on, _, err := gomlxfeed.Mesh(b.workload.layout.Mesh(), b.d)
	if err != nil {
		return nil, err
	}
	spec, err := gomlxfeed.ShardingSpec(on, sharding.P("data"), 1+len(b.shape))
	if err != nil {
		return nil, err
	}
	shape := shapes.Make(dtypes.MapOfNames[b.typ.String()], append([]int{b.batch / b.d.Num()}, b.shape...)...)
	each := len(host) / b.d.Num()
	return func() error {
		shards := make([]*tensors.Tensor, b.d.Num())
		for i := range shards {
			var err error
			if shards[i], err = tensors.FromRaw(b.d.Backend(), compute.DeviceNum(i), shape, host[i*each:][:each]); err != nil {
				return err
			}
		}
		array, err := dtensor.NewTensor(spec, shards)
		if err != nil {
			return err
		}
		return array.Finalize()
	}, nil
}

// loops returns the loops in the order of the fields of Rates.
func (b *bench) loops(ctx context.Context) (list []loop, err error) {
	add := func(l loop, fault error) {
		if fault == nil {
			list = append(list, l)
		}
		err = errors.Join(err, fault)
	}
	add(b.placed(ctx, prefetch))
	add(b.placed(ctx, 0))
	add(b.byHand(ctx))
	from, to := make([]byte, b.bytes()), make([]byte, b.bytes())
	put, fault := b.put(from)
	nothing := func() error { return nil }
	add(loop{put, nothing}, fault)
	add(loop{func() error { copy(to, from); return nil }, nothing}, nil)
	return list, err
}

func (b *bench) rates(ctx context.Context, each time.Duration) (r Rates, err error) {
	r = Rates{Case: b.name, BatchRows: b.batch, BatchBytes: b.bytes()}
	list, err := b.loops(ctx)
	defer func() {
		for _, l := range list {
			err = errors.Join(err, l.end())
		}
	}()
	if err != nil {
		return r, err
	}
	var steps []func() error
	for _, l := range list {
		steps = append(steps, l.step)
	}
	rates, times, err := inTurns(steps, each)
	if err != nil {
		return r, err
	}
	r.P50, r.P99 = quantile(times, 0.5), quantile(times, 0.99)
	r.Meshfeed, r.Single, r.ByHand, r.Put, r.Copy = rates[0], rates[1], rates[2], rates[3], rates[4]
	return r, nil
}

// timeRun runs a loop for some time, after a few steps that are not counted. It
// returns the seconds of each step and the steps per second.
func timeRun(step func() error, during time.Duration) (times []float64, rate float64, err error) {
	for range prefetch + 2 {
		if err := step(); err != nil {
			return nil, 0, err
		}
	}
	began := time.Now()
	for len(times) < minBatches || time.Since(began) < during {
		at := time.Now()
		if err := step(); err != nil {
			return nil, 0, err
		}
		times = append(times, time.Since(at).Seconds())
	}
	return times, float64(len(times)) / time.Since(began).Seconds(), nil
}

func (b *bench) steps(ctx context.Context, each time.Duration) (list []Steps, err error) {
	var feeds []loop
	defer func() {
		for _, l := range feeds {
			err = errors.Join(err, l.end())
		}
	}()
	for n := range maxPrefetch + 1 {
		l, err := b.placed(ctx, n)
		if err != nil {
			return nil, err
		}
		feeds = append(feeds, l)
	}
	for _, pause := range pauses {
		wait := func() error { time.Sleep(pause); return ctx.Err() }
		steps := []func() error{wait}
		for _, l := range feeds {
			steps = append(steps, func() error { return errors.Join(l.step(), wait()) })
		}
		rates, _, err := inTurns(steps, each)
		if err != nil {
			return list, err
		}
		result := Steps{Case: b.name, Pause: pause.Seconds(), Alone: 1 / rates[0]}
		for _, rate := range rates[1:] {
			result.Ahead = append(result.Ahead, 1/rate)
		}
		list = append(list, result)
	}
	return list, nil
}

// inTurns measures the step functions in turns, each for the same time. It returns the
// median rate of each function in calls per second. For the first function, it also
// returns the seconds of every call.
func inTurns(steps []func() error, each time.Duration) (rates, first []float64, err error) {
	perSecond := make([][]float64, len(steps))
	for round := range rounds + 1 {
		for i := range steps {
			at := (round + i) % len(steps)
			times, rate, err := timeRun(steps[at], each)
			if err != nil {
				return nil, nil, err
			}
			if round == 0 {
				continue // the first round only warms up
			}
			perSecond[at] = append(perSecond[at], rate)
			if at == 0 {
				first = append(first, times...)
			}
		}
	}
	for _, list := range perSecond {
		rates = append(rates, quantile(list, 0.5))
	}
	return rates, first, nil
}

// quantile returns the q-quantile of the values.
func quantile(values []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}
