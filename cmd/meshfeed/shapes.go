package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/dtype"
)

// shapesFlag is the value of --shapes: the shape of a row by field, and the type of the
// elements that binary values hold.
type shapesFlag arrowio.Options

// Type implements pflag.Value.
func (f *shapesFlag) Type() string { return "field=shape" }

// String implements pflag.Value.
func (f *shapesFlag) String() string {
	var list []string
	for name, shape := range f.Shapes {
		text := name + "=" + strings.Trim(strings.ReplaceAll(fmt.Sprint(shape), " ", "x"), "[]")
		if typ := f.Types[name]; typ != dtype.Invalid {
			text += ":" + typ.String()
		}
		list = append(list, text)
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

// Set implements pflag.Value. The name of a field may contain "=", and its shape cannot.
func (f *shapesFlag) Set(text string) error {
	at := strings.LastIndex(text, "=")
	if at < 1 {
		return errShape
	}
	name := text[:at]
	dims, typed, hasType := strings.Cut(text[at+1:], ":")
	var shape []int
	for _, word := range strings.Split(dims, "x") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 0 || n > math.MaxInt32 {
			return errShape
		}
		shape = append(shape, n)
	}
	typ, err := dtype.Parse(typed)
	if hasType && err != nil {
		return err
	}
	if _, twice := f.Shapes[name]; twice {
		return fmt.Errorf("the field %q has a shape already", name)
	}
	if f.Shapes == nil {
		f.Shapes, f.Types = map[string][]int{}, map[string]dtype.Type{}
	}
	if f.Shapes[name] = shape; hasType {
		f.Types[name] = typ
	}
	return nil
}

var errShape = errors.New("expected a field and the shape of a row, such as image=32x32x3 or, for elements in bytes, image=32x32x3:float32")

// dtypeFlag is the value of --dtype: the type of the elements of raw files.
type dtypeFlag dtype.Type

// Type implements pflag.Value.
func (f *dtypeFlag) Type() string { return "type" }

// String implements pflag.Value.
func (f *dtypeFlag) String() string {
	if typ := dtype.Type(*f); typ.Valid() {
		return typ.String()
	}
	return ""
}

// Set implements pflag.Value.
func (f *dtypeFlag) Set(text string) error {
	typ, err := dtype.Parse(text)
	*f = dtypeFlag(typ)
	return err
}
