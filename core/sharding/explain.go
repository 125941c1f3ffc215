package sharding

import "github.com/meshfeed/meshfeed/core/problem"

// Explain returns a few sentences about what a fault of this code means and what to
// do, or "" for an unknown code.
func Explain(code problem.Code) string { return explanations[code] }

var explanations = map[problem.Code]string{
	UnknownAxis:   `A partition spec names an axis that the mesh does not have. Names are compared letter by letter. Name one of the mesh's axes, or null for a dimension that is not split.`,
	DuplicateAxis: `A partition spec names an axis twice. An axis can split one dimension of an array only, as in JAX. Remove one of the two.`,
	SpecRank:      `A partition spec has more entries than the array has dimensions. The batch dimensions count: an image of shape ["B", 8, 8] has three. Remove entries, or write the shape in full.`,
	Indivisible:   `A dimension does not divide by the number of its tiles, which is the product of the sizes of the axes in its spec entry. JAX has no uneven shards for inputs. Choose a batch size or an array size that divides; the hint names the nearest ones.`,
}
