package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/status"
)

func newCache() *cobra.Command {
	var folder string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "cache {list|clear}",
		Short: "list or remove the decoded rows of Parquet and compressed files",
		Long: `Lists or removes the files of decoded rows that loaders keep on disk (mf.open, cache=). They can be made
again at any time. Files that a process uses are not removed.`,
		Example:   "  meshfeed cache list\n  meshfeed cache clear --folder /scratch/units",
		Args:      oneOf("list", "clear"),
		ValidArgs: []string{"list", "clear"},
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := arrowio.OpenCache(folder)
			switch {
			case status.CodeOf(err) == status.NotFound && folder == "":
				return noCache(cmd, err, args[0], asJSON)
			case err != nil:
				return err
			case args[0] == "clear":
				return clearCache(cmd, c, asJSON)
			}
			return listCache(cmd, c, asJSON)
		},
	}
	cmd.Flags().StringVar(&folder, "folder", "", "the folder, if it is not that of the user")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

// oneOf accepts exactly one of some words.
func oneOf(words ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			for _, w := range words {
				if args[0] == w {
					return nil
				}
			}
		}
		text := fmt.Sprintf("expected %s or %s", words[0], words[1])
		if len(args) == 2 && slices.Contains(words, args[0]) && cmd.Flags().Lookup("folder") != nil {
			text = fmt.Sprintf("unexpected argument %q: name the folder with a flag: --folder %s", args[1], args[1])
		}
		return usage(cmd, text)
	}
}

// cacheListing is the JSON of the verb "cache list".
type cacheListing struct {
	Folder  string      `json:"folder"`
	Bytes   int64       `json:"bytes"`
	Entries []cacheFile `json:"entries"`
}

type cacheFile struct {
	Key     string    `json:"key"`
	Bytes   int64     `json:"bytes"`
	Used    time.Time `json:"used"`
	InUse   bool      `json:"in_use,omitempty"`
	Scratch bool      `json:"scratch,omitempty"`
}

// cacheCleared is the JSON of the verb "cache clear".
type cacheCleared struct {
	Folder  string `json:"folder"`
	Removed int    `json:"removed"`
	Bytes   int64  `json:"bytes"`
	Left    int    `json:"left"` // because a process uses them
}

// noCache says that the user has no folder, which is no error.
func noCache(cmd *cobra.Command, err error, verb string, asJSON bool) error {
	var e *status.Error
	_ = errors.As(err, &e)
	path, _ := e.Attr("path").(string)
	switch {
	case asJSON && verb == "clear":
		return writeJSON(cmd.OutOrStdout(), cacheCleared{Folder: path})
	case asJSON:
		return writeJSON(cmd.OutOrStdout(), cacheListing{Folder: path, Entries: []cacheFile{}})
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "there is no cache in %s\n", visible(path))
	return err
}

func listCache(cmd *cobra.Command, c *arrowio.CacheFolder, asJSON bool) error {
	entries, err := c.Entries()
	if err != nil {
		return err
	}
	listing := cacheListing{Folder: c.Path(), Entries: []cacheFile{}}
	rows := [][]string{{"KEY", "SIZE", "LAST USE", ""}}
	for _, e := range entries {
		listing.Bytes += e.Bytes
		listing.Entries = append(listing.Entries, cacheFile{e.Key, e.Bytes, e.Used, e.InUse, e.Scratch})
		rows = append(rows, []string{visible(e.Key), sized(e.Bytes), ago(time.Since(e.Used)), stateOf(e)})
	}
	if asJSON {
		return writeJSON(cmd.OutOrStdout(), listing)
	}
	if len(entries) > 0 {
		if err := table(cmd.OutOrStdout(), rows); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s in %s of %s\n", sized(listing.Bytes), counted(len(entries), "file"), visible(c.Path()))
	return err
}

// stateOf says what a file is, unless it is a whole one that no process uses.
func stateOf(e arrowio.CacheEntry) string {
	switch {
	case e.Scratch && e.InUse:
		return "is being written"
	case e.Scratch:
		return "left by a process that was killed"
	case e.InUse:
		return "in use"
	}
	return ""
}

// ago says how long ago something was, in hours or days.
func ago(d time.Duration) string {
	switch hours := int(d.Hours()); {
	case hours < 1:
		return "within an hour"
	case hours < 48:
		return counted(hours, "hour") + " ago"
	default:
		return strconv.Itoa(hours/24) + " days ago"
	}
}

func clearCache(cmd *cobra.Command, c *arrowio.CacheFolder, asJSON bool) error {
	removed, bytes, left, failed := c.Clear()
	if asJSON {
		return errors.Join(writeJSON(cmd.OutOrStdout(), cacheCleared{c.Path(), removed, bytes, left}), failed)
	}
	text := fmt.Sprintf("removed %s in %s from %s", sized(bytes), counted(removed, "file"), visible(c.Path()))
	if left > 0 {
		text += fmt.Sprintf("; %s in use stayed", counted(left, "file"))
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), text)
	return errors.Join(failed, err)
}
