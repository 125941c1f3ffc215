// Package markup writes reports as HTML elements for notebooks and pages: tables and
// paragraphs without a script, in the text color of the page around them.
package markup

import "strings"

// style has the rules of all reports. CLASS stands for the class of the report. Rules for
// cells repeat it, because Jupyter aligns cells with a selector of two classes.
const style = `
.CLASS{font:14px/1.5 system-ui,sans-serif;color:inherit}
.CLASS div{overflow-x:auto}
.CLASS table{border-collapse:collapse;font-variant-numeric:tabular-nums;white-space:nowrap;background:none;color:inherit}
.CLASS caption{caption-side:top;text-align:left;opacity:.7;padding:4px 0;color:inherit}
.CLASS.CLASS th,.CLASS.CLASS td{padding:2px 8px;text-align:left;background:none;color:inherit;border-bottom:1px solid color-mix(in srgb,currentColor 20%,transparent)}
.CLASS.CLASS .n{text-align:right}
.CLASS ul{margin:0;padding-left:1.5em}
`

// Report collects the text of an HTML element.
type Report struct{ out strings.Builder }

// New begins the element of a report. The rules extend those of all reports.
func New(class, rules string) *Report {
	r := &Report{}
	r.Tag(`<div class="` + class + `"><style>` + strings.ReplaceAll(style+rules, "CLASS", class) + `</style>`)
	return r
}

// Tag writes markup as it is.
func (r *Report) Tag(markup string) { r.out.WriteString(markup) }

// NoBreak is a space that does not end a line.
const NoBreak = "\u00a0"

var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", NoBreak, "&nbsp;")

// Element writes an element with a text, which it escapes. An empty class is omitted.
func (r *Report) Element(name, class, text string) {
	if name == "th" && text == "" {
		name = "td" // a screen reader announces a heading, also an empty one
	}
	r.out.WriteString("<" + name)
	if class != "" {
		r.out.WriteString(` class="` + class + `"`)
	}
	r.out.WriteString(">" + escape.Replace(text) + "</" + name + ">")
}

// End ends the element of the report, and returns its text.
func (r *Report) End() string {
	r.out.WriteString("</div>\n")
	return r.out.String()
}

// Page returns a report as an HTML file, which needs no network.
func Page(title, report string) string {
	return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>` + escape.Replace(title) + `</title>
<style>:root{color-scheme:light dark}body{margin:1.5em}</style></head><body>
` + report + "</body></html>\n"
}
