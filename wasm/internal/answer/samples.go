package answer

import (
	"strconv"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/jsontext"
)

// MaxSamples bounds the records of one reply.
const MaxSamples = 1 << 16

// Samples says which records stand at some positions of an epoch. The question
// is {"order":"shuffle.1","seed":0,"records":1797,"epoch":0,"position":0,"count":16};
// seed, epoch and position are 0 where they are left out. The reply ends where
// the epoch does: {"records":[…],"error":null}.
func Samples(question []byte) []byte {
	records, err := samples(question)
	b := writer(`{"records":`).list(len(records), func(b writer, i int) writer { return b.int(records[i]) })
	return b.end(err)
}

func samples(question []byte) ([]int64, error) {
	q, err := readQuestion(question)
	if err != nil {
		return nil, err
	}
	order, err := sampler.New(q.order, q.numbers["seed"], q.numbers["records"])
	if err != nil {
		return nil, err
	}
	position, count := q.numbers["position"], q.numbers["count"]
	if position < 0 || position > order.Len() {
		return nil, refuse("position %d is not within the %d of an epoch", position, order.Len())
	}
	if count < 0 || count > MaxSamples {
		return nil, refuse("%d records are asked for, but at most %d are told at once", count, MaxSamples)
	}
	records := make([]int64, min(count, order.Len()-position))
	order.Epoch(q.numbers["epoch"]).Fill(records, position)
	return records, nil
}

// question is what is asked about an order.
type question struct {
	order   string
	numbers map[string]int64
}

func readQuestion(text []byte) (question, error) {
	q := question{numbers: map[string]int64{}}
	v, err := jsontext.Parse(text)
	if err != nil || v.Kind() != jsontext.Object {
		return q, refuse("the question is no JSON object")
	}
	for key, value := range v.Members() {
		ok := true
		switch key {
		case "order":
			q.order, ok = value.Text()
		case "seed", "records", "epoch", "position", "count":
			q.numbers[key], ok = value.Int()
			ok = ok && q.numbers[key] >= -layout.MaxInteger && q.numbers[key] <= layout.MaxInteger
		default:
			return q, refuse("%s is not a key", strconv.Quote(key)).WithHint("the keys are order, seed, records, epoch, position, count")
		}
		if !ok {
			return q, refuse("%s is %.40s", strconv.Quote(key), value).WithHint("order is a string, all else are integers within ±2^53")
		}
	}
	return q, nil
}

func refuse(format string, args ...any) *status.Error {
	return status.Errorf(status.InvalidArgument, "samples", format, args...)
}
