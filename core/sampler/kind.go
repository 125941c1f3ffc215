package sampler

import (
	"cmp"
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

	// check returns an error that states why the parameters are wrong. It is nil for a kind
	// without parameters.
	check func(n name) error

	// make creates an order of this kind. Units holds the sizes of the dataset's
	// units, or is nil if they are not known.
	make func(n name, seed, records int64, units []int64) (Order, error)

	// derive returns the parameters that follow from a run. If it is not nil, a
	// user may write the name without its version, such as "local", instead of
	// the full name. Up to short parameters may follow such a name; given has
	// all of them, and 0 for each that the user left out.
	derive    func(given []int64, r Run) ([]int64, error)
	short     int
	shortForm string                         // describes a short name, for messages
	accepts   func(given, full []int64) bool // whether a short name stands for these full parameters
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

// Run holds the facts of a run that decide the parameters of an order.
type Run struct {
	Batch int64 // rows of the global batch

	// Groups is the number of groups of equal size in the rows of a batch. A
	// process needs either all rows of a group or none.
	Groups int64

	Records  int64   // records in the dataset
	RowBytes int64   // bytes of the fields that a batch has, per record
	Units    []int64 // sizes of the dataset's units, or nil if they are not known
}

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
	before, _, parameters := strings.Cut(text, ":")
	for i := range kinds {
		if kinds[i].name == before && (kinds[i].parameters > 0) == parameters {
			k = &kinds[i]
		}
	}
	if k == nil {
		return n, nil, fail("there is no order %q", text).WithHint("use one of %s", forms()).With("order", text)
	}
	n = split(text)
	if len(n.parameters) != k.parameters || n.String() != text {
		return n, nil, wrong(text, "is not %s", k.form)
	}
	return n, k, nil
}

// split returns the parts of a text. If the result has another String, the text is not
// a name.
func split(text string) name {
	kind, rest, more := strings.Cut(text, ":")
	n := name{kind: kind}
	for more {
		var word string
		word, rest, more = strings.Cut(rest, ":")
		p, _ := strconv.ParseInt(word, 10, 64)
		n.parameters = append(n.parameters, p)
	}
	return n
}

// forms lists the forms of all names, including short forms that only loaders and layouts take.
func forms() string {
	var full, short []string
	for _, k := range kinds {
		full, short = append(full, k.form), append(short, cmp.Or(k.shortForm, unversioned(k.name)))
	}
	last := len(full) - 1
	return strings.Join(full[:last], ", ") + ", or " + full[last] + "; loaders and layouts also take " + strings.Join(short, ", ")
}

// unversioned returns the name of a kind without its version.
func unversioned(kind string) string {
	short, _, _ := strings.Cut(kind, ".")
	return short
}

// Full returns the full name of an order that has no parameters, such as "shuffle.1" for
// "shuffle", and any other name as it is.
func Full(name string) string {
	for _, k := range kinds {
		if k.parameters == 0 && unversioned(k.name) == name {
			return k.name
		}
	}
	return name
}

// wrong builds the error of an order with wrong parameters.
func wrong(name, format string, args ...any) error {
	return fail("order %q "+format, append([]any{name}, args...)...).With("order", name).
		WithHint("use the name in the state of the first loader")
}

// IsDerived reports whether a name stands for an order with parameters that follow from a
// run, such as "local" or "blocks".
func IsDerived(short string) bool { return derived(split(short).kind) != nil }

// derived returns the kind with the given name, without a version, if its parameters follow
// from a run.
func derived(short string) *kind {
	for i := range kinds {
		k := &kinds[i]
		if k.derive != nil && unversioned(k.name) == short {
			return k
		}
	}
	return nil
}

// given returns the parameters of a short name, and 0 for each that was left out.
func (k *kind) given(short string) ([]int64, error) {
	n := split(short)
	if n.String() != short || len(n.parameters) > k.short {
		return nil, fail("order %q is not %s", short, k.shortForm).With("order", short)
	}
	return append(n.parameters, make([]int64, k.short-len(n.parameters))...), nil
}

// Derive returns the full name of an order with parameters that follow from a run.
// IsDerived must be true for short.
func Derive(short string, r Run) (string, error) {
	k := derived(split(short).kind)
	given, err := k.given(short)
	if err != nil {
		return "", err
	}
	parameters, err := k.derive(given, r)
	if err != nil {
		return "", err
	}
	n := name{k.name, parameters}
	return n.String(), k.check(n)
}

// Accepts reports whether the order with this full name is one that the short name
// stands for.
func Accepts(short, full string) bool {
	n, k, err := parse(full)
	if err != nil || k != derived(split(short).kind) {
		return false
	}
	given, err := k.given(short)
	return err == nil && k.accepts(given, n.parameters)
}
