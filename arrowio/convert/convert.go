// Package convert writes a dataset into files that are laid out for gathering: Arrow IPC
// without compression.
//
// A conversion divides the records into files, in their order. The division follows from the
// input and the options alone, so several processes can each convert a part of the files, and
// a run that was ended is continued by another. The process that begins writes a manifest,
// which lists all files; arrowio then opens the directory only if all of them exist. Every
// file gets its name when it is whole.
//
// Records are read in windows, column by column. A window consists of whole units of the
// input, if these are not too large, so that each unit is decoded once.
package convert

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/arrowio/internal/files"
	"github.com/meshfeed/meshfeed/arrowio/internal/local"
	"github.com/meshfeed/meshfeed/arrowio/internal/manifest"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// Options select what is converted. The zero value converts everything.
type Options struct {
	Files       arrowio.Options // how the input is opened, and its columns; Cache is not used
	RowsPerFile int64           // 0 for whole units of the input, of about 256 MiB there

	// Part and Parts select the files that this run converts. Part counts from 1
	// to Parts. Zeros stand for all files.
	Part, Parts int

	// Progress, if set, is called with the number of converted records of the part,
	// and with its total.
	Progress func(done, total int64)
}

// Report describes a conversion after a run, and the run.
type Report struct {
	Records int64    // in all files
	Files   int      // in all parts
	Missing []string // files that other parts have yet to write
	Part    Part     // what this run was for
}

// Part describes the part of the files that a run converts.
type Part struct {
	Number, Of int   // 1 of 1 if the run converts all files
	Records    int64 // in the files of the part
	Written    int   // files that the run wrote
	Present    int   // files of the part that were there before
	Bytes      int64 // in the files that the run wrote
}

// Run converts files, globs and directories to a directory, which it makes. If the directory
// has a manifest, the run continues that conversion.
//
// The error is Incompatible if the input or the options differ from the manifest. It is
// InvalidArgument for a directory with other files, Unsupported for a column that cannot be
// converted, and IO if a file cannot be written.
func Run(ctx context.Context, inputs []string, dir string, o Options) (Report, error) {
	if err := o.check(dir); err != nil {
		return Report{}, err
	}
	here := o.Files.Opener == nil && !slices.ContainsFunc(inputs, func(in string) bool { return files.Scheme(in) != "" })
	if err := checkPlace(inputs, dir); here && err != nil {
		return Report{}, err
	}
	if o.Files.Cache = ""; here {
		o.Files.Cache = "memory" // each unit is read once, so none is kept on disk
	}
	ds, err := arrowio.OpenFiles(ctx, inputs, o.Files)
	if err != nil {
		return Report{}, err
	}
	defer ds.Close()
	if s := ds.Schema(); o.Files.Columns == nil && len(s.Skipped) > 0 {
		return Report{}, refuse(s, s.Skipped[0])
	}
	j := job{ds: ds, src: ds, folder: local.Folder{Dir: dir}, options: o}
	return j.run(ctx, j.arguments(inputs))
}

// View converts a view of files, such as one with computed fields, in the same way. Arguments belong to
// the command that continues the conversion, without the folder and the part. Options.Files is not used.
// Fields that the view passes on keep their Arrow types.
func View(ctx context.Context, files *arrowio.Dataset, v source.Source, arguments []string, dir string, o Options) (Report, error) {
	if err := o.check(dir); err != nil {
		return Report{}, err
	}
	j := job{ds: files, src: v, folder: local.Folder{Dir: dir}, options: o}
	return j.run(ctx, arguments)
}

func (o *Options) check(dir string) error {
	if files.Scheme(dir) != "" {
		return status.Errorf(status.Unsupported, "convert", "%s is an address, and a conversion writes to a folder of this machine", files.Public(dir)).
			WithHint("name a folder, and copy it to the storage when it is finished").With("path", files.Public(dir))
	}
	if o.RowsPerFile < 0 {
		return status.Errorf(status.InvalidArgument, "convert", "%d rows per file", o.RowsPerFile).WithHint("give 1 or more")
	}
	if o.Parts == 0 && o.Part == 0 {
		o.Part, o.Parts = 1, 1
	}
	if o.Part < 1 || o.Part > o.Parts {
		return status.Errorf(status.InvalidArgument, "convert", "part %d of %d does not exist", o.Part, o.Parts).WithHint("parts count from 1: the first of %d is 1/%d", max(o.Parts, 1), max(o.Parts, 1))
	}
	return nil
}

// checkPlace returns an error if a later run would find the output among its inputs.
func checkPlace(inputs []string, dir string) error {
	for _, in := range inputs {
		if local.Inside(dir, in) || local.Matches(in, dir) {
			return status.Errorf(status.InvalidArgument, "convert", "%s: the output folder belongs to the input %s", dir, in).
				WithHint("name a folder that lies outside of it").With("path", dir)
		}
	}
	return nil
}

func namesOf(s source.Schema) (names []string) {
	for _, f := range s.Fields {
		names = append(names, f.Name)
	}
	return names
}

// refuse returns the error for a column that cannot be converted.
func refuse(s source.Schema, c source.Skipped) error {
	e := status.Errorf(status.Unsupported, "convert", "the column %q (%s) cannot be converted: %s", c.Name, c.Type, c.Reason).With("field", c.Name)
	if len(s.Fields) == 0 {
		return e
	}
	return e.WithHint("convert the other columns: --columns %s", manifest.Quote(joined(namesOf(s))))
}

// joined returns names as --columns takes them: a name that contains a comma is quoted.
func joined(names []string) string {
	var text strings.Builder
	w := csv.NewWriter(&text)
	_ = w.Write(names) // a builder returns no error
	w.Flush()
	return strings.TrimSuffix(text.String(), "\n")
}

// job is a run of a conversion.
type job struct {
	ds      *arrowio.Dataset
	src     source.Source // the dataset, or a view of it
	folder  local.Folder
	options Options
}

func (j *job) run(ctx context.Context, arguments []string) (report Report, err error) {
	var bytes int64
	for _, f := range j.ds.Files() {
		if in, _ := (local.Opener{}).Split(f.Path); j.options.Files.Opener == nil && files.Scheme(f.Path) == "" && local.Inside(in, j.folder.Dir) {
			return report, status.Errorf(status.InvalidArgument, "convert", "%s: the input %s lies in the output folder", j.folder.Dir, f.Path).
				WithHint("name a folder of its own for the output").With("path", j.folder.Dir)
		}
		bytes += f.Bytes
	}
	schema, err := j.schema()
	if err != nil {
		return report, err
	}
	var units []int64
	if known := j.src.Facts().Units; known != nil {
		units = known()
	}
	if units == nil && j.src.Len() > 0 {
		return report, status.New(status.Unsupported, "convert", "the records of the view are in no order of the files").
			WithHint("convert what is below it, such as the datasets of a mixture")
	}
	p := newPlan(units, schema.chosen, j.src.Len(), bytes)
	m := manifest.Manifest{Version: manifest.Version, Arguments: arguments, Records: j.src.Len(), RowsPerFile: j.options.RowsPerFile, Columns: schema.described}
	records := p.files(j.src.Len(), j.options.RowsPerFile)
	if len(records) > maxFiles {
		return report, status.Errorf(status.InvalidArgument, "convert", "%d rows per file make %d files, and at most %d are opened", j.options.RowsPerFile, len(records), maxFiles).
			WithHint("give more rows per file")
	}
	names := make([]string, len(records))
	for i, n := range records {
		names[i] = nameOf(i, len(records))
		m.Files = append(m.Files, manifest.File{Name: names[i], Records: n})
	}
	fingerprint, err := j.src.Fingerprint(ctx)
	if err != nil {
		return report, err
	}
	m.Fingerprint = fingerprint.String()
	if err := begin(j.folder, &m); err != nil {
		return report, err
	}
	reader, err := newWindows(j.src, p)
	if err != nil {
		return report, err
	}
	defer reader.close()
	report.Records, report.Files = m.Records, len(m.Files)
	w := writer{
		conversion: conversion{plan: p, records: records, names: names, show: j.options.Progress},
		windows:    reader, folder: disk{j.folder}, fields: schema.fields, schema: schema.arrow, part: &report.Part,
	}
	first, last := share(len(records), j.options.Part, j.options.Parts)
	for _, n := range records[first:last] {
		w.total += n
	}
	report.Part = Part{Number: j.options.Part, Of: j.options.Parts, Records: w.total}
	if err := w.run(ctx, first, last); err != nil {
		return report, err
	}
	there, err := j.folder.Names()
	if err != nil {
		return report, err
	}
	if report.Missing = m.Missing(there); report.Missing != nil {
		return report, nil
	}
	return report, checkResult(ctx, j.folder.Dir)
}

// maxFiles is the number of files that a dataset may have.
const maxFiles = 1 << 20

// checkResult opens the directory, which reads all metadata.
func checkResult(ctx context.Context, dir string) error {
	ds, err := arrowio.OpenFiles(ctx, []string{dir}, arrowio.Options{IO: "read"})
	if damage, ok := errors.AsType[*status.Error](err); ok && damage.Code == status.DataLoss {
		return damage.WithHint("remove this file, and run the same command, which writes it again")
	}
	if err != nil {
		return err
	}
	return ds.Close()
}

// outputSchema describes the columns of the output.
type outputSchema struct {
	arrow     arrowmeta.Schema
	fields    []field
	chosen    []source.Field
	described []manifest.Column
}

func (j *job) schema() (s outputSchema, err error) {
	stored, metadata := j.ds.Arrow()
	s.arrow.Metadata = metadata
	for _, f := range j.src.Schema().Fields {
		var column arrowmeta.Field
		if number, same, ok := j.ds.Schema().Field(f.Name); ok && !f.Mapped && same.TypeString() == f.TypeString() {
			column = stored[number]
		} else if f.Logical != "" && f.Logical != "string" && f.Logical != "binary" {
			return s, status.Errorf(status.Unsupported, "convert", "field %q has the type %s under another name than in the files", f.Name, f.TypeString()).
				WithHint("convert it under its own name").With("field", f.Name)
		}
		out := newField(f, column)
		s.fields, s.chosen = append(s.fields, out), append(s.chosen, f)
		s.arrow.Fields = append(s.arrow.Fields, out.arrow)
		typ := f.TypeString()
		if f.Ragged == 0 && f.Logical == "" {
			typ = f.Type.String()
		}
		s.described = append(s.described, manifest.Column{Name: f.Name, Type: typ, Shape: append([]int{}, f.Shape...)})
	}
	if len(s.fields) == 0 {
		return s, status.New(status.InvalidArgument, "convert", "the files have no column to convert")
	}
	return s, nil
}

// arguments returns the arguments of the command, without the output and the part.
func (j *job) arguments(inputs []string) []string {
	var list []string
	for _, in := range inputs {
		list = append(list, files.Public(in))
	}
	add := func(flag, value string) { list = append(list, flag, value) }
	if j.options.Files.Columns != nil {
		add("--columns", joined(j.options.Files.Columns))
	}
	if n := j.options.RowsPerFile; n > 0 {
		add("--rows-per-file", fmt.Sprint(n))
	}
	for _, f := range j.ds.Schema().Fields {
		if shape := j.options.Files.Shapes[f.Name]; shape != nil {
			text := f.Name + "=" + strings.Trim(strings.ReplaceAll(fmt.Sprint(shape), " ", "x"), "[]")
			if typ := j.options.Files.Types[f.Name]; typ != dtype.Invalid {
				text += ":" + typ.String()
			}
			add("--shapes", text)
		}
	}
	if typ := j.options.Files.DType; typ != dtype.Invalid {
		add("--dtype", typ.String())
		add("--skip", fmt.Sprint(j.options.Files.Skip))
	}
	if j.options.Files.Duplicates == "allow" {
		add("--duplicates", "allow")
	}
	if j.options.Files.Split != "" {
		add("--split", j.options.Files.Split)
	}
	return list
}

// disk is a folder of this machine.
type disk struct{ local.Folder }

func (d disk) Create(name string) (file, error) {
	s, err := d.Folder.Create(name)
	if err != nil {
		return nil, err // a nil pointer would be no nil interface
	}
	return s, nil
}
