package main

import (
	"cmp"
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
		Long: `Lists or removes the files of decoded rows that loaders keep on disk (cache= of mf.open, ds.cache): a line for the
columns of a dataset. They can be made again at any time. Files that a process uses are not removed.`,
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
	cmd.Flags().StringVar(&folder, "folder", "", "the folder, if it is not the user's cache folder")
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
	Folder   string       `json:"folder"`
	Bytes    int64        `json:"bytes"`
	Files    int          `json:"files"`
	Datasets []cachedRows `json:"datasets"`
}

// cachedRows are the files of some columns of a dataset.
type cachedRows struct {
	Dataset string    `json:"dataset"` // empty for files that do not say it
	Columns string    `json:"columns"`
	Files   int       `json:"files"`
	Bytes   int64     `json:"bytes"`
	Used    time.Time `json:"used"` // the last of them
	InUse   bool      `json:"in_use,omitempty"`
}

// cacheCleared is the JSON of the verb "cache clear".
type cacheCleared struct {
	Folder  string `json:"folder"`
	Removed int    `json:"removed"`
	Bytes   int64  `json:"bytes"`
	Left    int    `json:"left"` // because a process uses them
}

// noCache reports that the user has no cache folder. This is not an error.
func noCache(cmd *cobra.Command, err error, verb string, asJSON bool) error {
	var e *status.Error
	_ = errors.As(err, &e)
	path, _ := e.Attr("path").(string)
	switch {
	case asJSON && verb == "clear":
		return writeJSON(cmd.OutOrStdout(), cacheCleared{Folder: path})
	case asJSON:
		return writeJSON(cmd.OutOrStdout(), cacheListing{Folder: path, Datasets: []cachedRows{}})
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "there is no cache in %s\n", visible(path))
	return err
}

func listCache(cmd *cobra.Command, c *arrowio.CacheFolder, asJSON bool) error {
	entries, err := c.Entries()
	if err != nil {
		return err
	}
	listing := cacheListing{Folder: c.Path(), Files: len(entries), Datasets: cachedOf(entries)}
	rows := [][]string{{"DATASET", "COLUMNS", "SIZE", "FILES", "LAST USE", ""}}
	for _, d := range listing.Datasets {
		listing.Bytes += d.Bytes
		state := ""
		if d.InUse {
			state = "in use"
		}
		rows = append(rows, []string{cmp.Or(d.Dataset, "unknown"), d.Columns, sized(d.Bytes), grouped(int64(d.Files)), ago(time.Since(d.Used)), state})
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

// cachedOf adds up the files of each dataset and its columns. Files that were used longest
// ago come first.
func cachedOf(entries []arrowio.CacheEntry) []cachedRows {
	list := []cachedRows{}
	for _, e := range slices.Backward(entries) { // the last use comes first
		if e.Scratch { // it is being written, or its writer was killed
			e.Columns = "unfinished"
		}
		i := slices.IndexFunc(list, func(d cachedRows) bool { return d.Dataset == e.Dataset && d.Columns == e.Columns })
		if i < 0 {
			i = len(list)
			list = append(list, cachedRows{Dataset: e.Dataset, Columns: e.Columns, Used: e.Used})
		}
		d := &list[i]
		d.Files, d.Bytes, d.InUse = d.Files+1, d.Bytes+e.Bytes, d.InUse || e.InUse
	}
	slices.Reverse(list)
	return list
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
