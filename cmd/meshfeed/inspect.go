package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/source"
)

func newInspect() *cobra.Command {
	var asJSON, lengths bool
	var files arrowio.Options
	cmd := &cobra.Command{
		Use:   "inspect FILE…",
		Short: "list fields, row shapes, files, and columns that cannot be arrays",
		Long: `Opens files of Arrow IPC, Parquet and NumPy, raw files, streams, globs, directories and
addresses of web servers as one dataset. Prints its fields, its files, and the columns that cannot be
arrays, with the reason. Reads metadata only; for the fingerprint of files on disks it also reads
samples of the data, or all data up to 16 MiB.

With --lengths it reads the length of every row of ragged fields (lists, text and bytes), and prints the
smallest, the median, the 99th percentile and the largest. It reads offsets and no values.`,
		Example: "  meshfeed inspect train-*.arrow\n  meshfeed inspect --lengths --json some-directory",
		Args:    need(1, -1, "files, globs or directories"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ds, err := arrowio.OpenFiles(cmd.Context(), args, files)
			if err != nil {
				return err
			}
			defer ds.Close()
			fingerprint, err := ds.Fingerprint(cmd.Context())
			if err != nil {
				return err
			}
			i := inspection{Records: ds.Len(), Fields: []fieldFacts{}, Skipped: []skippedFacts{}, Fingerprint: fingerprint.String()}
			i.Covered.Bytes, i.Covered.Of = source.CoverageOf(ds)
			i.FarBytes = source.FarBytesOf(ds)
			i.addSchema(ds.Schema())
			i.addFiles(ds.Files())
			if lengths {
				update, finish := newProgress(cmd.ErrOrStderr(), "reading lengths", records...)
				err := i.addLengths(cmd.Context(), ds, update)
				finish()
				if err != nil {
					return err
				}
			}
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), i)
			}
			return i.print(cmd.OutOrStdout())
		},
	}
	datasetFlags(cmd, &files, &asJSON)
	cmd.Flags().BoolVar(&lengths, "lengths", false, "read the lengths of ragged rows")
	return cmd
}

// datasetFlags adds the flags of every verb that reads a dataset.
func datasetFlags(cmd *cobra.Command, o *arrowio.Options, asJSON *bool) {
	cmd.Flags().Var((*shapesFlag)(o), "shapes", "the shape of a row of lists or bytes, such as image=32x32x3 or image=32x32x3:float32; may be repeated")
	cmd.Flags().StringSliceVar(&o.Columns, "columns", nil, "the columns that become fields, in this order, such as tokens,label; the others may differ between files")
	cmd.Flags().Var((*dtypeFlag)(&o.DType), "dtype", "the type of the elements of raw files, such as uint16 for tokens in train.bin")
	cmd.Flags().Int64Var(&o.Skip, "skip", 0, "the bytes before the first element of raw files")
	cmd.Flags().BoolVar(&o.Images, "images", false, "open a folder that has a folder of images for each class")
	cmd.Flags().StringVar(&o.Duplicates, "duplicates", "refuse", "refuse or allow a file that comes twice")
	cmd.Flags().StringVar(&o.Split, "split", "", "the split of a directory, such as train")
	cmd.Flags().BoolVar(asJSON, "json", false, "print as JSON")
}

// inspection is the JSON that the verb prints.
type inspection struct {
	Records     int64          `json:"records"`
	Fields      []fieldFacts   `json:"fields"`
	Skipped     []skippedFacts `json:"skipped"`
	Files       []fileFacts    `json:"files"`
	Fingerprint string         `json:"fingerprint"`
	Covered     coveredFacts   `json:"fingerprinted"`
	FarBytes    int64          `json:"far_bytes,omitempty"` // size of the files on other machines
}

// coveredFacts holds how many bytes of the files the fingerprint covers.
type coveredFacts struct {
	Bytes int64 `json:"bytes"`
	Of    int64 `json:"of"`
}

type fieldFacts struct {
	Name     string `json:"name"`
	DType    string `json:"dtype"`
	Shape    []int  `json:"shape"`
	RowBytes int    `json:"row_bytes,omitempty"` // bytes per row of a fixed field
	Nullable bool   `json:"nullable"`
	Logical  string `json:"logical,omitempty"`

	Names []string `json:"names,omitempty"` // class names that integers stand for

	Ragged  int          `json:"ragged,omitempty"`
	Type    string       `json:"type,omitempty"` // type of a ragged field
	Lengths *lengthFacts `json:"lengths,omitempty"`
}

type skippedFacts struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Reason string `json:"reason"`
}

type fileFacts struct {
	Path         string `json:"path"`
	Format       string `json:"format"`
	Records      int64  `json:"records"`
	Batches      int    `json:"record_batches"`
	LargestBatch int64  `json:"largest_batch"`
	Bytes        int64  `json:"bytes"`
	Compression  string `json:"compression,omitempty"`
}

// String describes what the fingerprint covers.
func (c coveredFacts) String() string {
	if c.Bytes == c.Of {
		return "It covers every byte."
	}
	if c.Bytes == 0 {
		return "It covers metadata, and the versions of the files by the word of their server: meshfeed verify --hash reads every byte."
	}
	return fmt.Sprintf("It covers samples, %s of %s: meshfeed verify --hash reads every byte.", sized(c.Bytes), sized(c.Of))
}

func (i *inspection) addSchema(s source.Schema) {
	for _, f := range s.Fields {
		shape := f.Shape
		if shape == nil {
			shape = []int{}
		}
		facts := fieldFacts{Name: f.Name, DType: f.Type.String(), Shape: shape, RowBytes: f.RowBytes(), Nullable: f.Nullable, Logical: f.Logical, Names: f.Names}
		if f.Ragged > 0 {
			facts.RowBytes, facts.Ragged, facts.Type = 0, f.Ragged, f.TypeString()
		}
		i.Fields = append(i.Fields, facts)
	}
	for _, s := range s.Skipped {
		i.Skipped = append(i.Skipped, skippedFacts(s))
	}
}

func (i *inspection) addFiles(files []arrowio.FileInfo) {
	for _, f := range files {
		i.Files = append(i.Files, fileFacts{f.Path, f.Format, f.Records, f.Batches, f.LargestBatch, f.Bytes, f.Compression})
	}
}

func (i *inspection) print(out io.Writer) error {
	var bytes int64
	for _, f := range i.Files {
		bytes += f.Bytes
	}
	fmt.Fprintf(out, "%s in %s, %s\n\n", counted(i.Records, "record"), counted(len(i.Files), "file"), sized(bytes))
	if err := i.printFields(out); err != nil {
		return err
	}
	if err := i.printSkipped(out); err != nil {
		return err
	}
	if err := i.printFiles(out); err != nil {
		return err
	}
	if i.FarBytes > 0 {
		requests, seconds := layout.FetchCost(i.FarBytes)
		fmt.Fprintf(out, "\nan epoch over all fields fetches up to %s once per host: %s or more, %.1f s at 16 × 50 MB/s\n",
			sized(i.FarBytes), counted(requests, "request"), seconds)
	}
	_, err := fmt.Fprintf(out, "\nfingerprint %s\n%s\n", i.Fingerprint, i.Covered)
	return err
}

func (i *inspection) printFields(out io.Writer) error {
	if len(i.Fields) == 0 {
		fmt.Fprintln(out, "no column can be loaded as an array")
		return nil
	}
	rows := [][]string{{"FIELD", "TYPE", "ROW", "BYTES PER ROW", ""}}
	for _, f := range i.Fields {
		var notes []string
		bytes := grouped(int64(f.RowBytes))
		switch {
		case f.Ragged > 0:
			notes, bytes = append(notes, f.Type+": rows differ in length, so a loader leaves it out"), "varies"
			if f.images() {
				notes = append(notes, "ds.decode_image makes arrays of these images")
			}
		case f.Logical != "":
			notes = append(notes, "stands for "+f.Logical)
		}
		if f.Names != nil {
			notes = append(notes, source.ClassesText(f.Names))
		}
		if f.Nullable && f.Ragged == 0 {
			notes = append(notes, "may hold nulls: without a fill value, a null is an error")
		}
		rows = append(rows, []string{f.Name, f.DType, f.rowText(), bytes, strings.Join(notes, "; ")})
	}
	if err := table(out, rows); err != nil {
		return err
	}
	return i.printLengths(out)
}

// images reports whether rows are bytes, with the name of a field for images.
func (f *fieldFacts) images() bool {
	ending := f.Name[strings.LastIndex(f.Name, ".")+1:]
	return strings.Contains(f.Type, "binary") && slices.Contains([]string{"jpg", "jpeg", "png", "webp", "image"}, strings.ToLower(ending))
}

// rowText formats the shape of a row, with … for a size that varies.
func (f *fieldFacts) rowText() string {
	text := strings.TrimSuffix(strings.Repeat("… × ", f.Ragged), " × ")
	if f.Ragged == 0 || len(f.Shape) > 0 {
		return strings.TrimPrefix(text+" × "+shapeText(f.Shape), " × ")
	}
	return text
}

func (i *inspection) printSkipped(out io.Writer) error {
	if len(i.Skipped) == 0 {
		return nil
	}
	fmt.Fprintln(out, "\nNot loadable as arrays:")
	for _, s := range i.Skipped {
		fmt.Fprintf(out, "  %s (%s): %s\n", visible(s.Name), visible(s.Type), visible(s.Reason))
	}
	return nil
}

func (i *inspection) printFiles(out io.Writer) error {
	fmt.Fprintln(out)
	rows := [][]string{{"FILE", "FORMAT", "RECORDS", "RECORD BATCHES", "UP TO ROWS", "SIZE", ""}}
	compressed := false
	for _, f := range i.Files {
		if f.Format == "parquet" {
			rows[0][3] = "UNITS" // row groups, or pages of them
		}
		rows = append(rows, []string{f.Path, f.Format, grouped(f.Records), grouped(int64(f.Batches)), grouped(f.LargestBatch), sized(f.Bytes), f.Compression})
		compressed = compressed || f.Compression != ""
	}
	if err := table(out, rows); err != nil {
		return err
	}
	if compressed {
		fmt.Fprintln(out, "\nReading one row decodes a whole compressed record batch, or a unit of Parquet: a row group or, with a page index, some of its pages. A loader keeps up to 256 MiB decoded in memory, and more on disk: see meshfeed cache. To convert the files: meshfeed convert FILE… FOLDER")
	}
	return nil
}
