package main

import (
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/meshfeed/meshfeed/arrowio"
)

func newVerify() *cobra.Command {
	var asJSON, hash bool
	var o windowsOptions
	var files arrowio.Options
	cmd := &cobra.Command{
		Use:   "verify FILE…",
		Short: "read a dataset end to end: nulls, offsets, indices, text, hash",
		Long: `Reads every byte and compares the data with the metadata. In every column, nested ones included, it
checks null counts, offsets, views, runs, unions, dictionary indices and UTF-8. In columns that are
arrays it checks that all rows have one shape. Values of extension types are checked as their storage
type. Anything that is not checked is listed.

With --hash it prints the SHA-256 of every file, as sha256sum does, and one hash over these. Equal
hashes prove that two hosts have the same files. The fingerprint alone covers only samples of data
beyond 16 MiB.

With --order blocks and --batch-size it also prints how well this order shuffles the batches, and the
bytes of a window.

The exit status is 0 if the checks find no damage, and 2 otherwise; the message names the file and the
position.`,
		Example: "  meshfeed verify train-*.arrow\n  meshfeed verify --hash --json some-directory\n  meshfeed verify --order blocks --batch-size 1024 train-*.parquet",
		Args:    need(1, -1, "files, globs or directories"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ds, err := arrowio.OpenFiles(cmd.Context(), args, files)
			if err != nil {
				return err
			}
			defer ds.Close()
			windows, err := o.windows(cmd, ds)
			if err != nil {
				return err
			}
			update, finish := newProgress(cmd.ErrOrStderr(), "verifying", progressbar.OptionShowBytes(true))
			v, err := ds.Verify(cmd.Context(), arrowio.VerifyOptions{Hash: hash, Progress: update})
			finish()
			if err != nil {
				return err
			}
			return printVerification(cmd, ds.Files(), v, windows, asJSON)
		},
	}
	datasetFlags(cmd, &files, &asJSON)
	cmd.Flags().BoolVar(&hash, "hash", false, "hash every byte")
	o.flags(cmd)
	return cmd
}

// fileHash is the hash of one file, in hexadecimal digits as sha256sum prints it.
type fileHash struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

func fileHashes(files []arrowio.FileInfo, h *arrowio.Hash) []fileHash {
	list := make([]fileHash, len(files))
	for i, f := range files {
		list[i] = fileHash{f.Path, hex.EncodeToString(h.Files[i][:])}
	}
	return list
}

// printVerification prints the results. Windows is nil if they were not asked for.
func printVerification(cmd *cobra.Command, files []arrowio.FileInfo, v arrowio.Verification, windows *windowFacts, asJSON bool) error {
	out := cmd.OutOrStdout()
	if asJSON {
		facts := verificationFacts(files, v)
		if windows != nil {
			facts["windows"] = windows
		}
		return writeJSON(out, facts)
	}
	verdict := "no damage found"
	if len(v.Unchecked) > 0 {
		verdict = "no damage found in what was checked"
	}
	unit := "record batch"
	if slices.ContainsFunc(files, func(f arrowio.FileInfo) bool { return f.Format == "parquet" }) {
		unit = "unit" // row groups, or pages of them
	}
	text := fmt.Sprintf("%s in %s, %s, %s: %s\n",
		counted(v.Records, "record"), counted(v.Batches, unit), counted(v.Columns, "column"), sized(v.Bytes), verdict)
	for _, u := range v.Unchecked {
		text += fmt.Sprintf("not checked  %q (%s): %s\n", u.Column, strings.Trim(strconv.QuoteToGraphic(u.Type), `"`), u.What)
	}
	text += fmt.Sprintf("fingerprint  %s\n", v.Fingerprint)
	if windows != nil {
		text += fmt.Sprintf("order        %s: %s\n", windows.Order, windows.quality)
	}
	if v.Hash != nil {
		text += fmt.Sprintf("sha256       %x, over the hashes of the files:\n", v.Hash.Sum)
		for _, f := range fileHashes(files, v.Hash) {
			text += fmt.Sprintf("%s  %s\n", f.SHA256, f.Path)
		}
	}
	_, err := io.WriteString(out, text)
	return err
}

// uncheckedFacts is the JSON form of [arrowio.Unchecked].
type uncheckedFacts struct {
	Column string `json:"column"`
	Type   string `json:"type"`
	What   string `json:"what"`
}

func verificationFacts(files []arrowio.FileInfo, v arrowio.Verification) map[string]any {
	not := []uncheckedFacts{}
	for _, u := range v.Unchecked {
		not = append(not, uncheckedFacts(u))
	}
	facts := map[string]any{
		"records": v.Records, "record_batches": v.Batches, "columns": v.Columns, "bytes": v.Bytes,
		"fingerprint": v.Fingerprint.String(), "not_checked": not,
	}
	if v.Hash != nil {
		facts["sha256"] = hex.EncodeToString(v.Hash.Sum[:])
		facts["files"] = fileHashes(files, v.Hash)
	}
	return facts
}
