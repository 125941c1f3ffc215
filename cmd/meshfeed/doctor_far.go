package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/core/problem"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// The measurements of a storage: reads at once, and the bounds of each of them.
var (
	reads     = []int{1, 4, 16}
	readBytes = int64(8 << 20) // of each read; so a storage is read for 21 × 8 MiB in all
	readTime  = 2 * time.Second
)

// distant is the time of a request above which a storage is in another region.
const distant = 300 * time.Millisecond

// isAddress reports whether a name is of a storage far away.
func isAddress(name string) bool { return strings.Contains(name, "://") }

// far describes the storage of an address, and measures it by reads of one file.
func (r *report) far(ctx context.Context, address string, timeout time.Duration) {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	opener, name, err := arrowio.OpenerOf(limited, firstNumber.ReplaceAllString(address, "$1"), arrowio.Options{})
	if err != nil {
		r.failed(err)
		return
	}
	began := time.Now()
	file, entries, err := someFile(limited, opener, name)
	listed := since(began)
	var b blob.Blob
	if err == nil {
		began = time.Now()
		b, err = opener.Open(limited, file)
	}
	opened := since(began)
	r.fact("credentials", arrowio.SourceOf(opener))
	if err != nil {
		if limited.Err() != nil && ctx.Err() == nil {
			err = status.Errorf(status.IO, "doctor", "%s: no answer within %v", name, timeout).WithHint("look at the network and the proxy (HTTPS_PROXY, NO_PROXY), or wait longer by --timeout")
		}
		r.failed(err)
		return
	}
	defer b.Close()
	if entries > 0 {
		r.fact("listing", fmt.Sprintf("%s in %v", counted(entries, "item"), listed))
	}
	r.fact("file", fmt.Sprintf("%s, %s, opened in %v", b.Name(), sized(b.Size()), opened))
	r.measure(limited, opener, b)
}

// firstNumber matches a range of numbers, such as {000..127}.
var firstNumber = regexp.MustCompile(`\{([0-9]+)\.\.[0-9]+\}`)

func since(t time.Time) time.Duration { return time.Since(t).Round(100 * time.Microsecond) }

// failed adds an error of a storage.
func (r *report) failed(err error) {
	remedy := "look at the address and the network"
	message := err.Error()
	if e, ok := errors.AsType[*status.Error](err); ok {
		message = e.Msg
		if e.Hint != "" {
			remedy = e.Hint
		}
	}
	r.problem(problem.Error, message, remedy)
}

// someFile returns a large file of a name, a glob or a directory, and how many entries a listing of it has.
func someFile(ctx context.Context, opener blob.Opener, name string) (file blob.Entry, entries int, err error) {
	dir := name
	var list []blob.Entry
	if strings.ContainsAny(name, "*?[") {
		dir = ""
		list, err = opener.Glob(ctx, name)
	} else {
		file, err = opener.Stat(ctx, name)
		if err != nil || !file.Dir {
			return file, 0, err
		}
		list, err = opener.List(ctx, name)
	}
	entries = len(list)
	for range 8 { // levels of directories
		if err != nil || len(list) == 0 {
			break
		}
		found := slices.MaxFunc(list, func(a, b blob.Entry) int {
			if a.Dir != b.Dir {
				return map[bool]int{true: -1, false: 1}[a.Dir]
			}
			return int(min(max(a.Size-b.Size, -1), 1))
		})
		if dir != "" {
			found.Name = opener.Join(dir, found.Name)
		}
		if !found.Dir {
			return found, entries, nil
		}
		dir = found.Name
		list, err = opener.List(ctx, dir)
	}
	if err == nil {
		err = status.Errorf(status.NotFound, "doctor", "%s: there is no file", name).WithHint("name a directory with files, or one of them")
	}
	return file, entries, err
}

// measure reads the blob with several reads at once, for a bounded time and number of bytes.
func (r *report) measure(ctx context.Context, opener blob.Opener, b blob.Blob) {
	counts, _ := opener.(interface{ Fetched() source.Fetched })
	if b.Size() < 1<<20 || counts == nil {
		r.problem(problem.Info, fmt.Sprintf("%s is too small to measure the rate", b.Name()), "name a file of 8 MiB or more")
		return
	}
	var waits []time.Duration
	for i := range int64(5) {
		began := time.Now()
		if _, err := b.ReadAt(ctx, make([]byte, 1), i*b.Size()/8); err != nil {
			r.failed(err)
			return
		}
		waits = append(waits, since(began))
	}
	slices.Sort(waits)
	first := waits[len(waits)/2]
	r.fact("first byte", fmt.Sprintf("%v (median of %d)", first, len(waits)))
	var texts []string
	var rates []float64
	for _, n := range reads {
		rate, err := rateOf(ctx, counts.Fetched, b, n)
		if err != nil {
			r.failed(err)
			return
		}
		rates = append(rates, rate)
		texts = append(texts, fmt.Sprintf("%s/s by %d", sized(int64(rate)), n))
	}
	r.fact("rate", strings.Join(texts, ", ")+" reads at once")
	best := slices.Index(rates, slices.Max(rates))
	r.fact("best", fmt.Sprintf("%d reads at once; up to %d are made", reads[best], opener.Hints().AtOnce))
	if first > distant {
		r.problem(problem.Warning, fmt.Sprintf("a request takes %v until its first byte, so the storage is far away or busy", first), "run in the region of the storage, and read in blocks (order=\"blocks\")")
	}
	if f := counts.Fetched(); f.Retries > 0 {
		r.problem(problem.Warning, fmt.Sprintf("%d of %d requests had to be made again", f.Retries, f.Requests), "look at the load of the server and at its limits")
	}
}

// rateOf returns the bytes per second of n reads at once.
func rateOf(ctx context.Context, fetched func() source.Fetched, b blob.Blob, n int) (float64, error) {
	limited, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	size := min(readBytes, b.Size())
	var group sync.WaitGroup
	var failed atomic.Pointer[error]
	before, began := fetched().Bytes, time.Now()
	for i := range n {
		group.Go(func() {
			offset := int64(i) * readBytes % (b.Size() - size + 1)
			if _, err := b.ReadAt(limited, make([]byte, size), offset); err != nil && limited.Err() == nil {
				failed.Store(&err)
			}
		})
	}
	group.Wait()
	taken := time.Since(began)
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return float64(fetched().Bytes-before) / taken.Seconds(), ctx.Err()
}
