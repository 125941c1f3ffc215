package main

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// entries divides a list such as "a=1, b=2". Blanks around an entry do not count.
func entries(text, separator string) []string {
	list := strings.Split(text, separator)
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return list
}

// listFlag is a flag of package pflag with a list. Blanks around an entry do not count,
// unless the list has quotes, as an entry with a comma needs them.
type listFlag struct{ pflag.Value }

// Set implements pflag.Value.
func (f listFlag) Set(text string) error {
	if !strings.Contains(text, `"`) {
		text = strings.Join(entries(text, ","), ",")
	}
	return f.Value.Set(text)
}

// trimLists makes a [listFlag] of every list of a command and the commands below it.
func trimLists(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if strings.HasSuffix(f.Value.Type(), "Slice") {
			f.Value = listFlag{f.Value}
		}
	})
	for _, verb := range cmd.Commands() {
		trimLists(verb)
	}
}

// sizeFlag is a number of bytes, in the forms that the layout page reads, too.
type sizeFlag int64

// Type implements pflag.Value.
func (f *sizeFlag) Type() string { return "bytes" }

// String implements pflag.Value.
func (f *sizeFlag) String() string { return strconv.FormatInt(int64(*f), 10) }

// Set implements pflag.Value.
func (f *sizeFlag) Set(text string) error {
	found := sizeForm.FindStringSubmatch(text)
	if found == nil {
		return errSize
	}
	n, _ := strconv.ParseFloat(strings.ReplaceAll(found[1], "_", ""), 64) // ±Inf if out of range
	power, base := strings.Index("kmgtp", strings.ToLower(found[2]))+1, 1000.0
	if found[3] != "" {
		base = 1024
	}
	if found[2] == "" {
		power = 0
	}
	if n *= math.Pow(base, float64(power)); n != math.Trunc(n) || math.Abs(n) > 1<<53 {
		return errSize
	}
	*f = sizeFlag(n)
	return nil
}

var (
	sizeForm = regexp.MustCompile(`(?i)^\s*(-?\d[\d_]*(?:\.\d+)?(?:e\d+)?)\s*(?:([kmgtp])(i?))?b?\s*$`)
	errSize  = errors.New("expected a whole number of bytes up to 2^53, such as 1000000000, 1e9, 1GB or 512MiB")
)
