package local

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Times keeps a time for each name in a folder, for all processes of a machine: an empty file has it as the time
// of its last change. So nothing waits for a lock, and a process that is killed leaves a whole time. Errors of the
// file system leave a process without the times of others.
type Times struct{ Folder string }

// UserTimes returns the times in a folder of the user's cache directory. The folder is "", which keeps nothing, if
// there is no such directory or a network would have to answer for each time.
func UserTimes(name string) Times {
	dir, err := os.UserCacheDir()
	if err != nil || IsRemote(dir) {
		return Times{}
	}
	return Times{filepath.Join(dir, "meshfeed", name)}
}

func (t Times) path(name string) string {
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(t.Folder, hex.EncodeToString(sum[:20]))
}

// Time returns the time of a name, or zero.
func (t Times) Time(name string) time.Time {
	if t.Folder == "" {
		return time.Time{}
	}
	info, err := os.Stat(t.path(name))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// SetTime sets the time of a name.
func (t Times) SetTime(name string, at time.Time) {
	if t.Folder == "" {
		return
	}
	path := t.path(name)
	if err := os.Chtimes(path, at, at); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	_ = os.MkdirAll(t.Folder, 0o700)
	if file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
		_ = file.Close()
		_ = os.Chtimes(path, at, at)
	}
}
