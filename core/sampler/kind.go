package sampler

import (
	"strconv"
	"strings"
)

// kind describes how the orders of one kind are constructed. The name of an order is
// the name of its kind, followed by the parameters: "shuffle.1", "local.1:4:64". To
// add a kind, write its file and append it to kinds.
type kind struct {
	name       string
	form       string // describes a full name, for messages
	parameters int    // number of parameters

	// make creates an order of this kind. The error states why the parameters are
	// wrong.
	make func(n name, seed, records int64) (Order, error)

	// derive returns the parameters that follow from a layout. If it is not
	// nil, a layout document may have the name without its version, "local",
	// instead of the full name.
	derive func(Grouping) []int64
}

// kinds lists all kinds.
var kinds = []kind{sequentialKind, shuffleKind, localKind, blocksKind}

// name is the parsed name of an order.
type name struct {
	kind       string
	parameters []int64
}

// String returns the name in the form that saved states contain.
func (n name) String() string {
	text := n.kind
	for _, p := range n.parameters {
		text += ":" + strconv.FormatInt(p, 10)
	}
	return text
}

// Grouping divides the Batch rows of a batch into Groups groups of equal size. A
// process needs either all rows of a group or none.
type Grouping struct{ Groups, Batch int64 }

// Names lists the names of the orders without parameters.
func Names() []string {
	var names []string
	for _, k := range kinds {
		if k.parameters == 0 {
			names = append(names, k.name)
		}
	}
	return names
}

// parse returns the parts of a name, and its kind. It does not check the values of
// the parameters; the kind's make does.
func parse(text string) (n name, k *kind, err error) {
	before, after, parameters := strings.Cut(text, ":")
	for i := range kinds {
		if kinds[i].name == before && (kinds[i].parameters > 0) == parameters {
			k = &kinds[i]
		}
	}
	if k == nil {
		return n, nil, fail("there is no order %q", text).WithHint("use one of %s", forms()).With("order", text)
	}
	n.kind = before
	for parameters {
		var word string
		word, after, parameters = strings.Cut(after, ":")
		p, _ := strconv.ParseInt(word, 10, 64) // the comparison below finds an error
		n.parameters = append(n.parameters, p)
	}
	if len(n.parameters) != k.parameters || n.String() != text {
		return n, nil, wrong(text, "is not %s", k.form)
	}
	return n, k, nil
}

// forms lists the forms of all names.
func forms() string {
	text := ""
	for i, k := range kinds {
		switch {
		case i == len(kinds)-1:
			text += ", or "
		case i > 0:
			text += ", "
		}
		text += k.form
	}
	return text
}

// wrong builds the error of an order with wrong parameters.
func wrong(name, format string, args ...any) error {
	return fail("order %q "+format, append([]any{name}, args...)...).With("order", name).
		WithHint("use the name in the state of the first loader")
}

// IsDerived reports whether a name stands for an order whose parameters follow
// from a layout, such as "local".
func IsDerived(short string) bool { return derived(short) != nil }

// derived returns the kind whose name without its version is short, if its
// parameters follow from a layout.
func derived(short string) *kind {
	for i := range kinds {
		k := &kinds[i]
		if unversioned, _, _ := strings.Cut(k.name, "."); k.derive != nil && unversioned == short {
			return k
		}
	}
	return nil
}

// Derive returns the full name of an order whose parameters follow from a layout.
// IsDerived must be true for short.
func Derive(short string, g Grouping) string {
	k := derived(short)
	return name{k.name, k.derive(g)}.String()
}

// Accepts reports whether the order with this full name is one that the short name
// stands for.
func Accepts(short, full string) bool {
	_, k, err := parse(full)
	return err == nil && k == derived(short)
}
