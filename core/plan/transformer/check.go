package transformer

import (
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/wording"
)

const (
	// MaxCount is the largest number of parameters, of FLOPs per token, and of bytes
	// that one layer keeps. JSON readers hold integers up to it exactly.
	MaxCount = 1 << 53

	maxSize = 1 << 31 // the largest number in a shape

	root = "/model/transformer"
)

func invalid(path, format string, args ...any) *status.Error {
	return status.Errorf(status.InvalidArgument, "transformer", path+": "+format, args...).With("path", path)
}

// Check returns an error for a shape that no model can have. The attribute "path"
// of the error is a JSON Pointer into a strategy document.
func (s Shape) Check() error {
	if err := s.checkSizes(); err != nil {
		return err
	}
	if err := s.checkHeads(); err != nil {
		return err
	}
	if err := s.checkLatent(); err != nil {
		return err
	}
	if err := s.checkNames(); err != nil {
		return err
	}
	if err := s.checkExperts(); err != nil {
		return err
	}
	return s.checkTotals()
}

// size is a number of a shape, with its key in a document.
type size struct {
	key      string
	value    int
	optional bool // 0 means the default
}

func checkSizes(path string, sizes []size) error {
	for _, n := range sizes {
		least := 1
		if n.optional {
			least = 0
		}
		switch {
		case n.value == 0 && !n.optional: // documents have no 0 here
			return invalid(path+"/"+n.key, "the key %q is missing", n.key).WithHint("give a number from 1 to 2^31")
		case n.value < least || n.value > maxSize:
			hint := "a model needs at least 1"
			switch {
			case n.value > maxSize:
				hint = "make it smaller"
			case n.optional:
				hint = "leave it out for the default"
			}
			return invalid(path+"/"+n.key, "%s is %d, but must be from 1 to 2^31", n.key, n.value).WithHint("%s", hint)
		}
	}
	return nil
}

func (s Shape) checkSizes() error {
	return checkSizes(root, []size{
		{"layers", s.Layers, false}, {"hidden", s.Hidden, false}, {"heads", s.Heads, false}, {"kv_heads", s.KVHeads, true},
		{"head_dim", s.HeadDim, true}, {"ffn", s.FFN, false}, {"vocab", s.Vocab, false}, {"sequence", s.Sequence, false},
	})
}

func (s Shape) checkHeads() error {
	if s.HeadDim == 0 && s.Hidden%s.Heads != 0 {
		return invalid(root+"/heads", "hidden %d does not divide by %d heads: %d %% %d = %d", s.Hidden, s.Heads, s.Hidden, s.Heads, s.Hidden%s.Heads).
			WithHint("give head_dim if a head is not hidden / heads wide")
	}
	if k := s.KVHeads; k > 0 && s.Heads%k != 0 {
		return invalid(root+"/kv_heads", "%d heads do not divide by %d key and value heads: %d %% %d = %d", s.Heads, k, s.Heads, k, s.Heads%k).
			WithHint("use a divisor of heads, 1 for multi-query attention, or leave it out")
	}
	return nil
}

func (s Shape) checkLatent() error {
	l := s.Latent
	if l == nil {
		return nil
	}
	path := root + "/latent"
	if s.KVHeads > 0 && s.KVHeads != s.Heads {
		return invalid(root+"/kv_heads", "with latent attention, every query head has a key, but there are %d heads and %d key and value heads", s.Heads, s.KVHeads).
			WithHint("leave it out")
	}
	return checkSizes(path, []size{{"query", l.Query, true}, {"key_value", l.KeyValue, false}, {"rotary", l.Rotary, false}, {"value", l.Value, true}})
}

func (s Shape) checkNames() error {
	switch s.Norm {
	case "", RMSNorm, LayerNorm:
	default:
		return invalid(root+"/norm", "%s is not a normalization", wording.Quote(string(s.Norm))).WithHint(`write "rms" or "layer"`)
	}
	switch s.Positions {
	case "", Rotary, Learned:
	default:
		return invalid(root+"/positions", "%s is not a kind of positions", wording.Quote(string(s.Positions))).
			WithHint(`write "learned" for a table with a row per position, and "rotary" for positions without parameters`)
	}
	return nil
}

func (s Shape) checkExperts() error {
	e := s.Experts
	if e == nil {
		return nil
	}
	path := root + "/experts"
	err := checkSizes(path, []size{
		{"count", e.Count, false}, {"active", e.Active, false}, {"every", e.Every, true}, {"ffn", e.FFN, true},
		{"shared", e.Shared, true}, {"after", e.After, true},
	})
	switch {
	case err != nil:
		return err
	case e.Active > e.Count:
		return invalid(path+"/active", "%d experts process a token, but there are %d", e.Active, e.Count).WithHint("active counts the experts for one token")
	case e.Every > s.Layers:
		return invalid(path+"/every", "each %d-th layer has experts, but there are %d layers", e.Every, s.Layers).
			WithHint("1 means every layer; leave out experts for a dense model")
	case s.ExpertLayers(0, s.Layers) == 0:
		return invalid(path+"/after", "the first %d layers have no experts, so none of the %d layers has", e.After, s.Layers).WithHint("leave out experts for a dense model")
	case e.CapacityThousandths < 0 || e.CapacityThousandths > maxSize:
		return invalid(path+"/capacity", "capacity is %g, but must be from 0.001 to 2^31 / 1000", float64(e.CapacityThousandths)/1000).
			WithHint("leave it out if no token is dropped")
	}
	return nil
}

func (s Shape) checkTotals() error {
	if s.Parameters() > MaxCount {
		return invalid(root, "the model has more than 2^53 parameters").WithHint("make the sizes smaller")
	}
	if s.FLOPs().Forward() > MaxCount {
		return invalid(root+"/sequence", "a token takes more than 2^53 floating-point operations forward").WithHint("make the sequence shorter")
	}
	return nil
}
