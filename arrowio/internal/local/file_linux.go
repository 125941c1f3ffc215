package local

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/core/status"
)

var _ blob.Mappable = (*File)(nil)

// canPopulate reports whether the kernel has MADV_POPULATE_READ (5.14). Without
// it, the program cannot know whether reading a page of a mapping waits for a disk.
var canPopulate = sync.OnceValue(func() bool {
	page, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return false
	}
	defer unix.Munmap(page)
	return unix.Madvise(page, unix.MADV_POPULATE_READ) == nil
})

// Map implements blob.Mappable.
func (f *File) Map(inParts bool) (mapping []byte, err error) {
	if !canPopulate() {
		return nil, status.New(status.Unsupported, "arrowio", `io "map" needs Linux 5.14 or later`).WithHint("set io to auto or read")
	}
	if f.size == 0 {
		return []byte{}, nil
	}
	if f.mapping, err = unix.Mmap(int(f.file.Fd()), 0, int(f.size), unix.PROT_READ, unix.MAP_SHARED); err != nil {
		return nil, f.ioError(err)
	}
	if inParts {
		err = unix.Madvise(f.mapping, unix.MADV_RANDOM)
	}
	return f.mapping, err
}

func (f *File) unmap() error {
	if f.mapping == nil {
		return nil
	}
	return unix.Munmap(f.mapping)
}

// Populate implements blob.Mappable.
func (f *File) Populate(from, to int64) error {
	from &^= int64(os.Getpagesize() - 1)
	for {
		switch err := unix.Madvise(f.mapping[from:to], unix.MADV_POPULATE_READ); {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
		case errors.Is(err, unix.EFAULT): // reading a page would raise SIGBUS
			if changed := f.Check(); changed != nil {
				return changed
			}
			return f.ioError(unix.EIO)
		default:
			return f.ioError(err)
		}
	}
}

// WillNeed implements blob.Mappable.
func (f *File) WillNeed(from, to int64) {
	_ = unix.Fadvise(int(f.file.Fd()), from, to-from, unix.FADV_WILLNEED)
}

// remoteTypes are file systems that wait for a server or another process to read.
var remoteTypes = map[uint32]bool{
	unix.NFS_SUPER_MAGIC: true, unix.SMB_SUPER_MAGIC: true, unix.CIFS_SUPER_MAGIC: true, unix.SMB2_SUPER_MAGIC: true,
	unix.FUSE_SUPER_MAGIC: true, unix.AFS_SUPER_MAGIC: true, unix.CEPH_SUPER_MAGIC: true, unix.V9FS_MAGIC: true,
	unix.CODA_SUPER_MAGIC: true, unix.OCFS2_SUPER_MAGIC: true, 0x0BD00BD0: true /* Lustre */, 0x47504653: true, /* GPFS */
}

// MapByDefault implements blob.Mappable.
func (f *File) MapByDefault() bool {
	var stat unix.Statfs_t
	return canPopulate() && unix.Fstatfs(int(f.file.Fd()), &stat) == nil && !remoteTypes[uint32(stat.Type)]
}

// IsRemote reports whether a path is known to lie on a file system that waits for a server or
// another process to read.
func IsRemote(path string) bool {
	var stat unix.Statfs_t
	return unix.Statfs(path, &stat) == nil && remoteTypes[uint32(stat.Type)]
}

// identityNow returns the identity of the open file. It does not use os.FileInfo,
// which allocates, because every step calls it.
func (f *File) identityNow() (identity, error) {
	var stat unix.Stat_t
	err := unix.Fstat(int(f.file.Fd()), &stat)
	return identity{
		size: stat.Size, modified: stat.Mtim.Nano(), changed: stat.Ctim.Nano(), accessed: stat.Atim.Nano(),
		attributes: [3]uint64{uint64(stat.Nlink), uint64(stat.Mode), uint64(stat.Uid)<<32 | uint64(stat.Gid)},
		device:     uint64(stat.Dev), inode: stat.Ino,
	}, err
}

// keyOf returns the text of File.Identity: device, inode, size and modification
// time. Some file systems use one inode number for several files, so size and time
// are needed.
func (f *File) keyOf(i identity) string {
	return fmt.Sprintf("%d:%d:%d:%d", i.device, i.inode, i.size, i.modified)
}

// versionOf returns the text of File.Version: inode, size, and the times of the last write
// and of the last status change. It leaves out the device, because its number changes when a disk
// is attached again.
func (f *File) versionOf(i identity) string {
	return fmt.Sprintf("%d:%d:%d:%d", i.inode, i.size, i.modified, i.changed)
}
