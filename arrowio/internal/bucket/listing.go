package bucket

import (
	"cmp"
	"context"
	"encoding/xml"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/core/status"
)

const (
	// maxListed bounds the keys of a listing, as a dataset is bounded.
	maxListed = 1 << 20

	// maxPage bounds the bytes of a page. 1,000 keys of 1,024 bytes, all of them escaped, need half of it.
	maxPage = 8 << 20
)

// query is what a listing asks for. Prefix, after and until are names.
type query struct {
	prefix    string // of all names
	delimiter string // "/" for one entry instead of all names in a directory
	after     string // the names from here on; "" for all
	until     string // the listing may end after this name; "" for never
}

// result is a page of a listing.
type result struct {
	XMLName   xml.Name  `xml:"ListBucketResult"`
	Encoding  string    `xml:"EncodingType"`
	Truncated bool      `xml:"IsTruncated"`
	Next      string    `xml:"NextContinuationToken"`
	Contents  []content `xml:"Contents"`
	Prefixes  []string  `xml:"CommonPrefixes>Prefix"`
}

// content is an object in a page.
type content struct {
	Key        string `xml:"Key"`
	ETag       string `xml:"ETag"`
	Generation string `xml:"Generation"`
	Size       int64  `xml:"Size"`
}

// list returns entries in the order of their names. They are complete up to the name end, or all if that is "".
func (op *Opener) list(ctx context.Context, q query) (entries []blob.Entry, end string, err error) {
	root, bucket, prefix, err := split(q.prefix)
	if err != nil {
		return nil, "", err
	}
	values := url.Values{"list-type": {"2"}, "encoding-type": {"url"}, "prefix": {prefix}}
	if q.delimiter != "" {
		values.Set("delimiter", q.delimiter)
	}
	if after := strings.TrimPrefix(q.after, root); after != "" {
		values.Set("start-after", after)
	}
	for pages := 0; len(entries)+pages <= maxListed; pages++ {
		var text []byte
		err := op.located(bucket, func(at *url.URL) (err error) {
			asked := *at
			asked.RawQuery = strings.ReplaceAll(values.Encode(), "+", "%20")
			text, _, err = op.web.Get(ctx, q.prefix, &asked)
			return err
		})
		if err != nil {
			return nil, "", err
		}
		more, next, err := parse(op.store, q.prefix, root, text)
		switch {
		case err != nil:
			return nil, "", err
		case next != "" && next == values.Get("continuation-token"):
			return nil, "", damaged(q.prefix, "its pages do not end")
		}
		entries = append(entries, more...)
		slices.SortFunc(more, byName)
		if next == "" {
			slices.SortFunc(entries, byName)
			return entries, "", nil
		}
		if last := len(more) - 1; q.until != "" && last >= 0 && more[last].Name >= q.until {
			return entries, more[last].Name, nil
		}
		values.Set("continuation-token", next)
	}
	return nil, "", status.Errorf(status.ResourceExhausted, "arrowio", "%s: the listing has more than %d names", q.prefix, maxListed).
		WithHint("name a smaller directory").With("path", q.prefix)
}

func byName(a, b blob.Entry) int { return cmp.Compare(a.Name, b.Name) }

// parse returns the entries of a page, and the token of the next page, or "". A name ends in a slash if it stands
// for a directory. Root is the name of the bucket, and prefix begins all names.
func parse(s store, prefix, root string, text []byte) (entries []blob.Entry, next string, err error) {
	var r result
	if len(text) > maxPage {
		return nil, "", damaged(prefix, fmt.Sprintf("a page has more than %d bytes", maxPage))
	}
	if err := xml.Unmarshal(text, &r); err != nil {
		return nil, "", damaged(prefix, fmt.Sprintf("a page is not valid XML: %v", err))
	}
	for _, p := range r.Prefixes {
		if !strings.HasSuffix(p, "/") && !(r.Encoding == "url" && strings.HasSuffix(p, "%2F")) {
			return nil, "", damaged(prefix, "a directory in it has no slash at its end")
		}
		r.Contents = append(r.Contents, content{Key: p})
	}
	for _, c := range r.Contents {
		key, err := c.Key, error(nil)
		if r.Encoding == "url" {
			key, err = url.QueryUnescape(key)
		}
		e := blob.Entry{Name: root + key, Size: c.Size}
		if err != nil || c.Size < 0 || !strings.HasPrefix(e.Name, prefix) {
			return nil, "", damaged(prefix, fmt.Sprintf("it has the name %q with %d bytes", key, c.Size))
		}
		if !strings.HasSuffix(key, "/") {
			e.Version = s.version(c)
		}
		entries = append(entries, e)
	}
	if r.Truncated && r.Next == "" {
		return nil, "", damaged(prefix, "a page does not say where the next one begins")
	}
	if !r.Truncated {
		r.Next = ""
	}
	return entries, r.Next, nil
}

// damaged returns the error for a listing that breaks the protocol.
func damaged(name, what string) error {
	return status.Errorf(status.DataLoss, "arrowio", "%s: the listing of the store is damaged: %s", name, what).
		WithHint("check the endpoint and the proxy, and try again").With("path", name)
}
