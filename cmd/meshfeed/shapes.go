package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// shapesFlag is the value of --shapes: the shape of a row by field.
type shapesFlag map[string][]int

// Type implements pflag.Value.
func (f *shapesFlag) Type() string { return "field=shape" }

// String implements pflag.Value.
func (f *shapesFlag) String() string {
	var list []string
	for name, shape := range *f {
		list = append(list, name+"="+strings.Trim(strings.ReplaceAll(fmt.Sprint(shape), " ", "x"), "[]"))
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
	var shape []int
	for _, word := range strings.Split(text[at+1:], "x") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 0 || n > math.MaxInt32 {
			return errShape
		}
		shape = append(shape, n)
	}
	if *f == nil {
		*f = shapesFlag{}
	}
	if _, twice := (*f)[text[:at]]; twice {
		return fmt.Errorf("the field %q has a shape already", text[:at])
	}
	(*f)[text[:at]] = shape
	return nil
}

var errShape = errors.New("expected a field and the shape of a row, such as image=32x32x3")
