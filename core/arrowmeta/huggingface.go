package arrowmeta

import (
	"encoding/json"
	"errors"
	"strings"
)

// The datasets library writes its features as JSON into the metadata of the
// schema: {"info": {"features": {"image": {"_type": "Array2D", "shape": [8, 8], …}}}}.
const (
	huggingFaceKey     = "huggingface"
	maxHuggingFaceJSON = 8 << 20 // names of classes stand there, too
	maxFeatureDepth    = 32
)

// hfFeature is the part of a feature's description that says its shape.
type hfFeature struct {
	Type    string     `json:"_type"`
	Shape   []*int     `json:"shape"`
	Length  *int       `json:"length"`
	Feature *hfFeature `json:"feature"`
}

// RowShapes gives for each field the shape of a row as Hugging Face's datasets
// library declared it, in the field's extension type or in the metadata of the
// schema: nil where nothing is declared, -1 for a size that is left open, and an
// empty shape for scalars. Lists come first: a list of Array2D(2, 3) is
// [-1, 2, 3]. What is declared need not be true of the rows. Declarations that
// cannot be understood are passed over.
func (s *Schema) RowShapes() [][]int {
	features := s.huggingFace()
	shapes := make([][]int, len(s.Fields))
	for i := range s.Fields {
		f := &s.Fields[i]
		if shapes[i] = f.arrayXD(); shapes[i] == nil {
			shapes[i] = features[f.Name].rowShape(0)
		}
	}
	return shapes
}

func (s *Schema) huggingFace() map[string]*hfFeature {
	text, _ := s.Metadata.Get(huggingFaceKey)
	if text == "" || len(text) > maxHuggingFaceJSON {
		return nil
	}
	var doc struct {
		Info struct {
			Features map[string]*hfFeature `json:"features"`
		} `json:"info"`
	}
	// A struct column may have a child named "shape" or "length": its value
	// has the wrong type and is left out, the rest is decoded.
	var wrong *json.UnmarshalTypeError
	if err := json.Unmarshal([]byte(text), &doc); err != nil && !errors.As(err, &wrong) {
		return nil
	}
	return doc.Info.Features
}

// rowShape gives the shape of a feature, nil where it is not known.
func (f *hfFeature) rowShape(depth int) []int {
	switch {
	case f == nil || depth > maxFeatureDepth:
		return nil
	case f.Type == "Value" || f.Type == "ClassLabel":
		return []int{}
	case strings.HasPrefix(f.Type, "Array"):
		return sizes(f.Shape)
	case f.Type == "List" || f.Type == "LargeList" || f.Type == "Sequence":
		length := f.Length
		if length != nil && *length < 0 {
			length = nil // older releases write -1
		}
		inner := f.Feature.rowShape(depth + 1)
		if inner == nil {
			return nil
		}
		outer := sizes([]*int{length})
		if outer == nil || len(inner) == maxRank {
			return nil
		}
		return append(outer, inner...)
	}
	return nil
}
