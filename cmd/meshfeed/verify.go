package main

import (
	"encoding/hex"
	"fmt"
	"io"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/meshfeed/meshfeed/arrowio"
)

func newVerify() *cobra.Command {
	var asJSON, hash bool
	var files arrowio.Options
	cmd := &cobra.Command{
		Use:   "verify FILE…",
		Short: "read a dataset end to end: bounds, counts, hash",
		Long: `Reads every record batch and checks what metadata promises: bounds, lengths, offsets, counts of
nulls. With --hash it prints the SHA-256 of every file, as sha256sum does, and one over these, which
proves that two hosts have the same files; the fingerprint of more than 16 MiB covers samples alone.

The exit status is 0 if all is well and 2 if something is damaged; the message names the file and the place.`,
		Example: "  meshfeed verify train-*.arrow\n  meshfeed verify --hash --json some-directory",
		Args:    need(1, -1, "files, globs or directories"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ds, err := arrowio.OpenFiles(args, files)
			if err != nil {
				return err
			}
			defer ds.Close()
			update, finish := newProgress(cmd.ErrOrStderr(), "verifying", progressbar.OptionShowBytes(true))
			v, err := ds.Verify(cmd.Context(), arrowio.VerifyOptions{Hash: hash, Progress: update})
			finish()
			if err != nil {
				return err
			}
			return printVerification(cmd, ds.Files(), v, asJSON)
		},
	}
	duplicatesFlag(cmd, &files)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	cmd.Flags().BoolVar(&hash, "hash", false, "hash every byte")
	return cmd
}

// fileHash is that of one file, as sha256sum gives it.
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

func printVerification(cmd *cobra.Command, files []arrowio.FileInfo, v arrowio.Verification, asJSON bool) error {
	out := cmd.OutOrStdout()
	if asJSON {
		facts := map[string]any{
			"records": v.Records, "record_batches": v.Batches, "bytes": v.Bytes, "fingerprint": v.Fingerprint.String(),
		}
		if v.Hash != nil {
			facts["sha256"] = hex.EncodeToString(v.Hash.Sum[:])
			facts["files"] = fileHashes(files, v.Hash)
		}
		return writeJSON(out, facts)
	}
	text := fmt.Sprintf("%s in %s, %s: all is well\n", counted(v.Records, "record"), counted(v.Batches, "record batch"), sized(v.Bytes))
	text += fmt.Sprintf("fingerprint  %s\n", v.Fingerprint)
	if v.Hash != nil {
		text += fmt.Sprintf("sha256       %x, over those of the files:\n", v.Hash.Sum)
		for _, f := range fileHashes(files, v.Hash) {
			text += fmt.Sprintf("%s  %s\n", f.SHA256, f.Path)
		}
	}
	_, err := io.WriteString(out, text)
	return err
}
