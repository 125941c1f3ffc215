package resident

import (
	"errors"
	"io/fs"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/meshfeed/meshfeed/core/status"
)

func root() fs.FS { return os.DirFS("/") }

// canPopulate reports whether the kernel knows MADV_POPULATE_READ (5.14),
// without which nothing tells whether a page of a mapping is safe to touch.
var canPopulate = sync.OnceValue(func() bool {
	page, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return false
	}
	defer unix.Munmap(page)
	return unix.Madvise(page, unix.MADV_POPULATE_READ) == nil
})

// mapIn maps the file. If only parts of it will be resident at a time, the
// kernel must not read the neighbours of what is asked for.
func (f *File) mapIn(inParts bool) (err error) {
	if f.file == nil {
		return status.Errorf(status.Unsupported, "arrowio", "%s is not a file and cannot be mapped", f.name).WithHint(`use io "auto" or "read"`)
	}
	if f.size == 0 {
		f.mapping = []byte{}
		return nil
	}
	if f.mapping, err = unix.Mmap(int(f.file.Fd()), 0, int(f.size), unix.PROT_READ, unix.MAP_SHARED); err != nil {
		return f.ioError(err)
	}
	if inParts {
		return unix.Madvise(f.mapping, unix.MADV_RANDOM)
	}
	return nil
}

func (f *File) mapOut() error {
	if len(f.mapping) == 0 {
		return nil
	}
	mapping := f.mapping
	f.mapping = nil
	return unix.Munmap(mapping)
}

// identityNow asks for the file's identity, without os.FileInfo's garbage: every
// step does.
func (f *File) identityNow() (identity, error) {
	var stat unix.Stat_t
	err := unix.Fstat(int(f.file.Fd()), &stat)
	return identity{
		size: stat.Size, modified: stat.Mtim.Nano(), changed: stat.Ctim.Nano(), accessed: stat.Atim.Nano(),
		attributes: [3]uint64{uint64(stat.Nlink), uint64(stat.Mode), uint64(stat.Uid)<<32 | uint64(stat.Gid)},
	}, err
}

// keyNow gives device and inode of the open file.
func (f *File) keyNow() Key {
	var stat unix.Stat_t
	if unix.Fstat(int(f.file.Fd()), &stat) != nil {
		return Key{path: f.name}
	}
	return Key{device: uint64(stat.Dev), inode: stat.Ino}
}

// populate waits until bytes [from, to) of the mapping are resident.
func (f *File) populate(from, to int64) error {
	from &^= int64(os.Getpagesize() - 1)
	for {
		switch err := unix.Madvise(f.mapping[from:to], unix.MADV_POPULATE_READ); {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
		case errors.Is(err, unix.EFAULT):
			if shrunk := f.Check(); shrunk != nil {
				return shrunk
			}
			return f.ioError(unix.EIO)
		default:
			return f.ioError(err)
		}
	}
}

// willNeed asks the kernel to read bytes [from, to) without waiting for them.
func (f *File) willNeed(from, to int64) {
	_ = unix.Fadvise(int(f.file.Fd()), from, to-from, unix.FADV_WILLNEED)
}

// remoteTypes are file systems where the other end may be slow, or gone.
var remoteTypes = map[uint32]bool{
	unix.NFS_SUPER_MAGIC: true, unix.SMB_SUPER_MAGIC: true, unix.CIFS_SUPER_MAGIC: true, unix.SMB2_SUPER_MAGIC: true,
	unix.FUSE_SUPER_MAGIC: true, unix.AFS_SUPER_MAGIC: true, unix.CEPH_SUPER_MAGIC: true, unix.V9FS_MAGIC: true,
	unix.CODA_SUPER_MAGIC: true, unix.OCFS2_SUPER_MAGIC: true, 0x0BD00BD0: true /* Lustre */, 0x47504653: true, /* GPFS */
}

// remote reports whether the file lies on a network or user-space file system,
// or is none.
func (f *File) remote() bool {
	if f.file == nil {
		return true
	}
	var stat unix.Statfs_t
	return unix.Fstatfs(int(f.file.Fd()), &stat) != nil || remoteTypes[uint32(stat.Type)]
}
