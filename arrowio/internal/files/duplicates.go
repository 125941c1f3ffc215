package files

import (
	"github.com/meshfeed/meshfeed/core/status"
)

// CheckDuplicates returns an error if records would come twice: if two files have one identity
// (see blob.Blob), or if their names differ in the suffix of the format alone.
func CheckDuplicates(list []File, identity func(i int) string) error {
	seen := make(map[string]int, len(list))
	for i := range list {
		key := identity(i)
		if first, twice := seen[key]; twice {
			return twiceFound(list, first, i, "are the same file, so its records would come twice")
		}
		seen[key] = i
	}
	clear(seen)
	for i := range list {
		name := list[i].Path
		if !isArrow(list[i].Base) && !isLines(list[i].Base) {
			continue
		}
		stem := name[:len(name)-len(suffixOf(name))]
		if first, twice := seen[stem]; twice && list[first].Path != name {
			return twiceFound(list, first, i, "have one name and two formats, so their records probably come twice")
		}
		seen[stem] = i
	}
	return nil
}

func twiceFound(list []File, first, second int, why string) error {
	return status.Errorf(status.InvalidArgument, "arrowio", "%v and %v %s", &list[first], &list[second], why).
		WithHint(`leave one out, or pass duplicates="allow" (Go: Duplicates, C: MF_ALLOW_DUPLICATES)`).With("path", list[second].Path)
}
