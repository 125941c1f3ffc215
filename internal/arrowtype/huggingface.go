package arrowtype

import (
	"strings"

	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/jsontext"
)

// Hugging Face's datasets library calls the type of a column its feature. It writes
// the features as JSON into the metadata of the schema:
// {"info": {"features": {"image": {"_type": "Array2D", "shape": [8, 8], …}}}}.
const (
	huggingFaceKey     = "huggingface"
	maxHuggingFaceJSON = 8 << 20 // large, because it may contain the names of many classes
	maxFeatureDepth    = 32
)

// features returns the feature of every field by name. A field without a feature has
// an empty value. If the metadata cannot be parsed, the map is nil.
func features(s *arrowmeta.Schema) map[string]jsontext.Value {
	text, _ := s.Metadata.Get(huggingFaceKey)
	if text == "" || len(text) > maxHuggingFaceJSON {
		return nil
	}
	doc, err := jsontext.Parse([]byte(text))
	if err != nil {
		return nil
	}
	wanted := make(map[string]jsontext.Value, len(s.Fields))
	for i := range s.Fields {
		wanted[s.Fields[i].Name] = nil
	}
	for name, feature := range doc.Get("info").Get("features").Members() {
		if _, ok := wanted[name]; ok {
			wanted[name] = feature
		}
	}
	return wanted
}

// declaredShape returns the shape of a row that Hugging Face's datasets library
// declares, in the field's extension type or in the metadata of the schema. It is
// nil if nothing is declared or the declaration is not known, and empty for scalars.
// A size that is left open is -1. Lists come first: a list of Array2D(2, 3) is
// [-1, 2, 3].
func declaredShape(f *arrowmeta.Field, features map[string]jsontext.Value) []int {
	if shape := arrayXD(f); shape != nil {
		return shape
	}
	return featureShape(features[f.Name], 0)
}

// classes returns the names of the classes that the integers of a field, or of its lists,
// stand for. It is nil if the feature does not name them.
func (f *Field) classes(feature jsontext.Value) (names []string) {
	if !f.Type.IsInteger() || f.Logical != "" {
		return nil
	}
	for range maxFeatureDepth {
		switch kind, _ := feature.Get("_type").Text(); kind {
		case "List", "LargeList", "Sequence":
			feature = feature.Get("feature")
			continue
		case "ClassLabel":
			for e := range feature.Get("names").Elements() {
				name, ok := e.Text()
				if !ok {
					return nil
				}
				names = append(names, name)
			}
		}
		break
	}
	return names
}

// SameFeatures reports whether two schemas declare the same features, or none.
func SameFeatures(a, b *arrowmeta.Schema) bool {
	first, _ := a.Metadata.Get(huggingFaceKey)
	second, _ := b.Metadata.Get(huggingFaceKey)
	return first == second
}

// encodedMedia returns the reason why a feature of encoded images, audio or files
// cannot be loaded, or "" for any other feature.
func encodedMedia(feature jsontext.Value) string {
	switch kind, _ := feature.Get("_type").Text(); kind {
	case "Image":
		return `it holds encoded images, which are not decoded here; store their pixels, with datasets.Array3D((height, width, 3), "uint8") as their feature`
	case "Audio":
		return `it holds encoded audio, which is not decoded here; store samples, with datasets.List(datasets.Value("float32"), length=n) as their feature`
	case "Video", "Pdf", "Nifti":
		return "it holds encoded files, which are not decoded here; store decoded arrays of one shape"
	}
	return ""
}

// featureShape returns the shape of a feature, or nil if it is not known. Depth is
// the number of lists around the feature.
func featureShape(feature jsontext.Value, depth int) []int {
	kind, _ := feature.Get("_type").Text()
	switch {
	case depth > maxFeatureDepth:
		return nil
	case kind == "Value" || kind == "ClassLabel":
		return []int{}
	case strings.HasPrefix(kind, "Array"):
		return sizes(feature.Get("shape"))
	case kind == "List" || kind == "LargeList" || kind == "Sequence":
		inner := featureShape(feature.Get("feature"), depth+1)
		length, ok := listLength(feature.Get("length"))
		if inner == nil || !ok || len(inner) == maxRank {
			return nil
		}
		return append([]int{length}, inner...)
	}
	return nil
}

// listLength returns the length of a list feature, or -1 if it is left open. It
// returns false if the value is not a length.
func listLength(v jsontext.Value) (int, bool) {
	if n, ok := v.Int(); v.Kind() == jsontext.Absent || ok && n < 0 { // older releases write -1
		return -1, true
	}
	return size(v)
}
