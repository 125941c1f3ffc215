package reply

import (
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/jsontext"
	"github.com/meshfeed/meshfeed/wasm/internal/envelope"
)

// MaxSamples bounds the records of one reply.
const MaxSamples = 1 << 16

// Samples returns the records at some positions of an epoch. The question is
// {"order":"shuffle.1","seed":0,"records":1797,"epoch":0,"position":0,"count":16}.
// A number that is left out is 0. The reply ends at the end of the epoch:
// {"records":[…],"error":null}.
func Samples(question []byte) []byte {
	records, err := samples(question)
	w := envelope.Begin()
	w.Key("records").Open('[')
	for _, record := range records {
		w.Int(record)
	}
	w.Close(']')
	return envelope.End(w, err)
}

func samples(text []byte) ([]int64, error) {
	var name string
	var seed, records, epoch, position, count int64
	r, err := jsontext.NewReader(text, jsontext.Form{MaxDepth: 1, MaxString: layout.MaxName, Fail: refuse})
	if err != nil {
		return nil, err
	}
	numbers := map[string]*int64{"seed": &seed, "records": &records, "epoch": &epoch, "position": &position, "count": &count}
	err = r.Members("a question", 0, []string{"order", "seed", "records", "epoch", "position", "count"}, func(key string) (err error) {
		if key == "order" {
			name, err = r.Text("the name of an order")
		} else {
			*numbers[key], err = r.Integer("an integer", -jsontext.MaxInteger, jsontext.MaxInteger)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	order, err := sampler.New(name, seed, records)
	if err != nil {
		return nil, err
	}
	if position < 0 || position > order.Len() {
		return nil, status.Errorf(status.InvalidArgument, "samples", "position %d is not within the %d of an epoch", position, order.Len())
	}
	if count < 0 || count > MaxSamples {
		return nil, status.Errorf(status.InvalidArgument, "samples", "%d records are asked for, but a reply has at most %d", count, MaxSamples)
	}
	list := make([]int64, min(count, order.Len()-position))
	order.Epoch(epoch).Fill(list, position)
	return list, nil
}

// refuse returns the error for a question that is not valid.
func refuse(pointer, message string) *status.Error {
	return status.New(status.InvalidArgument, "samples", message).With("path", pointer)
}
