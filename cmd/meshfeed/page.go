package main

import (
	"encoding/json"
	"errors"

	"github.com/spf13/cobra"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/layout/document"
	strategies "github.com/meshfeed/meshfeed/core/plan/strategy/document"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/wasm/page"
)

func newPage() *cobra.Command {
	return &cobra.Command{
		Use:   "page [DOC.json]",
		Short: "write the browser page of layouts and strategies" + withoutPage(),
		Long: `Writes the page: one HTML file that works without a network and sends nothing. If DOC.json is given, the
page opens with that layout or strategy, problems included; - is standard input.`,
		Example: "  meshfeed page layout.json > layout.html",
		Args:    need(0, 1, "at most one document"),
		RunE: func(cmd *cobra.Command, args []string) error {
			html, err := pageOf(cmd, args)
			if err != nil {
				return err
			}
			return writePage(cmd, html)
		},
	}
}

// withoutPage returns the note for verbs that need the page, if this build lacks it.
func withoutPage() string {
	if _, err := page.Hosted(); err != nil {
		return " (not in this build)"
	}
	return ""
}

// pageOf builds the page that opens with the layout or the strategy that the
// arguments name, if any.
func pageOf(cmd *cobra.Command, args []string) ([]byte, error) {
	if len(args) == 0 {
		return pageWith(cmd, nil)
	}
	text, err := readText(cmd, args[0], layoutKind)
	if err != nil {
		return nil, err
	}
	if isStrategy(text) {
		d, err := strategies.Parse(text)
		if err != nil {
			return nil, named(args[0], err)
		}
		return pageHolding(cmd, strategies.Canonical(d))
	}
	l, err := parseLayout(args[0], text)
	if err != nil {
		return nil, err
	}
	return pageWith(cmd, l)
}

// isStrategy reports whether a text is a strategy document and no layout, as the
// page decides it.
func isStrategy(text []byte) bool {
	var keys map[string]json.RawMessage
	if json.Unmarshal(text, &keys) != nil || keys["mesh"] != nil {
		return false
	}
	return keys["model"] != nil || keys["training"] != nil || keys["cluster"] != nil
}

// pageWith builds the page that opens with a layout, or with an example for nil.
func pageWith(cmd *cobra.Command, l *layout.Layout) ([]byte, error) {
	var text []byte
	if l != nil {
		text = document.Canonical(l.Document())
	}
	return pageHolding(cmd, text)
}

func pageHolding(cmd *cobra.Command, text []byte) ([]byte, error) {
	html, err := page.HTML(text)
	return html, byCommand(cmd, err)
}

// byCommand sets the operation of an error to the name of the command.
func byCommand(cmd *cobra.Command, err error) error {
	e, ok := errors.AsType[*status.Error](err)
	if !ok {
		return err
	}
	c := *e
	c.Op = cmd.Name()
	return &c
}

// writePage prints the page, but not to a terminal, which it would flood.
func writePage(cmd *cobra.Command, html []byte) error {
	out := cmd.OutOrStdout()
	if isTerminal(out) {
		return status.New(status.InvalidArgument, cmd.Name(), "the page is too long for a terminal, "+sized(int64(len(html)))).
			WithHint("write it to a file: append > layout.html to the command; or open it with meshfeed serve")
	}
	_, err := out.Write(html)
	return err
}
