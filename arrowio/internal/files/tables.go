package files

import (
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/core/status"
)

// refuseTables returns an error if one of the directories of data files belongs to a table of
// Delta Lake, Hudi or Iceberg.
func (f finder) refuseTables(dirs ...string) error {
	seen := map[string]bool{}
	for _, dir := range dirs {
		if root := f.outside(dir); !seen[root] {
			seen[root] = true
			if err := f.refuseTable(root); err != nil {
				return err
			}
		}
	}
	return nil
}

// outside returns the directory that contains all partitions around a directory.
func (f finder) outside(dir string) string {
	for {
		up, base := f.Opener.Split(dir)
		if _, ok := keyOf(base); !ok || up == dir {
			return dir
		}
		dir = up
	}
}

// refuseTable returns an error if a directory holds a table or the data of a table. It also holds
// old records, and only the log of the table says which.
func (f finder) refuseTable(dir string) error {
	log := f.tableLog(dir)
	if up, base := f.Opener.Split(dir); log == "" && base == "data" {
		dir = up
		log = f.icebergLog(dir)
	}
	if log == "" {
		return nil
	}
	return status.Errorf(status.Unsupported, "arrowio", "%s: the directory is a table of Delta Lake, Hudi or Iceberg: only its log, %s, says which files and records belong to it", dir, log).
		WithHint("open the files that its library lists, such as deltalake.DeltaTable(…).file_uris(), or write its rows to a directory of their own").With("path", dir)
}

// tableLog returns the name of the directory with a table's log, or "".
func (f finder) tableLog(dir string) string {
	entries, _ := f.list(dir)
	for _, name := range []string{"_delta_log", ".hoodie"} {
		if isDir(entries, name) {
			return name
		}
	}
	return f.icebergLog(dir)
}

// icebergLog returns "metadata" if the log of a table of Iceberg is there.
func (f finder) icebergLog(dir string) string {
	const name = "metadata"
	entries, _ := f.list(dir)
	if !isDir(entries, name) {
		return ""
	}
	inside, _ := f.list(f.join(dir, name))
	if slices.ContainsFunc(inside, func(e blob.Entry) bool { return strings.HasSuffix(e.Name, ".metadata.json") }) {
		return name
	}
	return ""
}
