package source

import (
	"fmt"
	"strings"
)

// maxClassName is the most characters of the name of a class that a text shows.
const maxClassName = 40

// DifferentClasses describes the first difference between the names of classes of two
// datasets. It is empty if they are equal, or if one of them has no names.
func DifferentClasses(a, b []string) string {
	if a == nil || b == nil {
		return ""
	}
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("class %d is %.*q and %.*q", i, maxClassName, a[i], maxClassName, b[i])
		}
	}
	if len(a) != len(b) {
		return fmt.Sprintf("there are %d and %d classes", len(a), len(b))
	}
	return ""
}

// ClassesText lists the first names of classes, such as `10 classes: "cat", "dog", "frog", …`.
func ClassesText(names []string) string {
	const shown = 3
	var list []string
	for _, name := range names[:min(len(names), shown)] {
		list = append(list, fmt.Sprintf("%.*q", maxClassName, name))
	}
	if len(names) > shown {
		list = append(list, "…")
	}
	if len(names) == 1 {
		return "1 class: " + list[0]
	}
	return fmt.Sprintf("%d classes: %s", len(names), strings.Join(list, ", "))
}
