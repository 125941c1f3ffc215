package bucket

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/blob/blobtest"
	"github.com/meshfeed/meshfeed/arrowio/internal/remote"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/far"
)

// with returns an environment with changes, which may change again.
func with(environment, changes map[string]string) func(string) string {
	return func(name string) string {
		if value, ok := changes[name]; ok {
			return value
		}
		return environment[name]
	}
}

// standIn returns a store of S3 that needs a signature, and an opener with an environment.
func standIn(t *testing.T, environment map[string]string) (*far.Store, *Opener) {
	t.Helper()
	s := far.NewStore("bucket")
	s.ID, s.Secret, s.Token = "AKID", "hunter2", "session+/="
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	all := map[string]string{"AWS_ENDPOINT_URL": server.URL, "AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "hunter2", "AWS_SESSION_TOKEN": "session+/="}
	op, err := NewS3(remote.NewOpener(remote.New(nil)), with(all, environment))
	if err != nil {
		t.Fatal(err)
	}
	return s, op
}

// standInGoogle returns a store of Google that needs a token, and an opener that gets tokens from a machine.
func standInGoogle(t *testing.T, environment map[string]string) (*far.Store, *Opener) {
	t.Helper()
	s := far.NewStore("bucket")
	s.Google, s.Token = true, "token 1"
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	given := 0
	machine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given++
		w.Header().Set("Metadata-Flavor", "Google")
		fmt.Fprintf(w, `{"access_token": "token %d", "expires_in": 3600, "token_type": "Bearer"}`, given)
	}))
	t.Cleanup(machine.Close)
	all := map[string]string{"GCE_METADATA_HOST": strings.TrimPrefix(machine.URL, "http://"), "HOME": t.TempDir()}
	op, err := NewGoogle(remote.NewOpener(remote.New(nil)), with(all, environment))
	if err != nil {
		t.Fatal(err)
	}
	if op.store.(*google).endpoint, err = endpoint("", server.URL); err != nil {
		t.Fatal(err)
	}
	return s, op
}

func TestOpener(t *testing.T) {
	for _, page := range []int{0, 1} {
		for _, dir := range []string{"", "/train/some dir", "/100 %+ü/a=b", "/a//b"} {
			put := func(s *far.Store) func(string, []byte) {
				s.Page = page
				return func(name string, data []byte) { s.Put(strings.TrimPrefix(dir+"/"+name, "/"), data) }
			}
			s, op := standIn(t, nil)
			blobtest.Run(t, op, "s3://bucket"+dir, put(s))
			s, op = standInGoogle(t, nil)
			blobtest.Run(t, op, "gs://bucket"+dir, put(s))
		}
	}
}

// TestKeys: a key may have any characters. It is found, opened and signed.
func TestKeys(t *testing.T) {
	for scheme, stand := range map[string]func(*testing.T, map[string]string) (*far.Store, *Opener){"s3": standIn, "gs": standInGoogle} {
		s, op := stand(t, nil)
		keys := []string{"a b", "a+b", "100%", "%2F", "ü/é", "x//y", "/x", "a=b&c", "q#x", "~!'()", "a:b@c;d,e", "line\nbreak", "<&>", "./x/../y", "日本", "\U0001F600"}
		for _, key := range keys {
			s.Put(key, []byte(key))
		}
		for _, key := range keys {
			name := scheme + "://bucket/" + key
			e, err := op.Stat(t.Context(), name)
			if err != nil || e.Name != name || e.Size != int64(len(key)) || e.Version == "" {
				t.Errorf("%q: %+v, %v", key, e, err)
				continue
			}
			dir, base := op.Split(name)
			list, err := op.List(t.Context(), dir)
			if err != nil || !slices.ContainsFunc(list, func(e blob.Entry) bool { return e.Name == base }) {
				t.Errorf("%q: %+v, %v", key, list, err)
			}
			b, err := op.Open(t.Context(), e)
			if err != nil {
				t.Errorf("%q: %v", key, err)
				continue
			}
			p := make([]byte, len(key))
			if _, err := b.ReadAt(t.Context(), p, 0); err != nil && err != io.EOF || string(p) != key {
				t.Errorf("%q: %q, %v", key, p, err)
			}
			_ = b.Close()
		}
	}
}

// asked returns the queries of listings, and the keys of other requests.
func asked(s *far.Store) string {
	var all []string
	for _, r := range s.Seen() {
		q := r.URL.Query()
		if q.Get("list-type") == "" {
			all = append(all, "GET "+strings.TrimPrefix(r.URL.Path, "/bucket/"))
			continue
		}
		all = append(all, strings.TrimSuffix("LIST "+q.Get("prefix")+" "+q.Get("delimiter"), " "))
	}
	return strings.Join(all, ", ")
}

// TestRequests: one listing has what a glob matches, a page has many names side by side, and all partitions in a directory
// take one listing.
func TestRequests(t *testing.T) {
	for _, c := range []struct {
		ask  func(op *Opener, name string) (int, error)
		name string
		want int
		sent string
	}{
		{globs, "d/train-0*", 100, "LIST d/train-0 /"},
		{globs, "*/s*/x", 1, "LIST "},
		{globs, "d/[s]*", 1, "LIST d/ /"},
		{globs, "none/*/x", 0, "LIST none/"},
		{lists, "d", 101, "LIST d/ /"},
		{lists, "", 3, "LIST  /"},
		{partitions, "p", 200, "LIST p/ /, LIST p/"},
		{partitions, "p/year=1900", 1, "LIST p/year=1900/ /, LIST p/year=1900/"},
		{numbered, "d/train-%03d", 100, "LIST d/ /"},
		{numbered, "none-%03d", 0, "LIST  /"},
	} {
		s, op := standIn(t, nil)
		for i := range 100 {
			s.Put(fmt.Sprintf("d/train-%03d", i), []byte{1})
			s.Put(fmt.Sprintf("p/year=%d/month=1/x", 1900+i), []byte{1})
		}
		s.Put("d/sub/x", []byte{1})
		s.Put("dx", []byte{1})
		if got, err := c.ask(op, "s3://bucket/"+c.name); err != nil || got != c.want {
			t.Errorf("%s: %d, %v", c.name, got, err)
		}
		if got := asked(s); got != c.sent {
			t.Errorf("%s: %s", c.name, got)
		}
	}
}

func globs(op *Opener, name string) (int, error) {
	list, err := op.Glob(context.Background(), name)
	return len(list), err
}

func lists(op *Opener, name string) (int, error) {
	list, err := op.List(context.Background(), name)
	return len(list), err
}

// partitions counts the directories in a directory, at any depth.
func partitions(op *Opener, name string) (n int, err error) {
	list, err := op.List(context.Background(), name)
	for _, e := range list {
		if e.Dir && err == nil {
			var below int
			below, err = partitions(op, op.Join(name, e.Name))
			n += 1 + below
		}
	}
	return n, err
}

// numbered counts the names with numbers that exist.
func numbered(op *Opener, format string) (n int, err error) {
	for i := range 100 {
		switch _, err := op.Stat(context.Background(), fmt.Sprintf(format, i)); {
		case err == nil:
			n++
		case status.CodeOf(err) != status.NotFound:
			return n, err
		}
	}
	return n, nil
}

// TestConditions: each request for an object has the version of the listing as a condition, also the first.
func TestConditions(t *testing.T) {
	for scheme, c := range map[string]struct {
		stand  func(*testing.T, map[string]string) (*far.Store, *Opener)
		header [2]string
	}{"s3": {standIn, [2]string{"If-Match", `"100000-1"`}}, "gs": {standInGoogle, [2]string{"X-Goog-If-Generation-Match", "1000001"}}} {
		s, op := c.stand(t, nil)
		s.Put("x", make([]byte, 100_000))
		if err := read(op, scheme+"://bucket/x", nil); err != nil {
			t.Error(err)
		}
		for i, r := range s.Seen()[1:] {
			if r.Header.Get(c.header[0]) != c.header[1] {
				t.Errorf("%s: request %d has %v", scheme, i, r.Header)
			}
		}
	}
}

// read opens a name, and reads its first bytes after a change.
func read(op *Opener, name string, change func()) error {
	e, err := op.Stat(context.Background(), name)
	if err != nil {
		return err
	}
	if change != nil {
		change()
	}
	b, err := op.Open(context.Background(), e)
	if err != nil {
		return err
	}
	defer b.Close()
	p := make([]byte, 10)
	for range 2 {
		if _, err := b.ReadAt(context.Background(), p, 0); err != nil {
			return err
		}
	}
	if !bytes.Equal(p, make([]byte, 10)) {
		return errors.New("other bytes")
	}
	return nil
}

// TestErrors compares whole messages.
func TestErrors(t *testing.T) {
	const changed = "; do not replace files while they are read; open the dataset again to read what the file holds now"
	for what, c := range map[string]struct {
		google bool
		env    map[string]string
		store  func(s *far.Store)
		name   string
		change func(s *far.Store)
		code   status.Code
		want   string
	}{
		"no bucket": {false, nil, nil, "s3://", nil, status.Unsupported,
			"s3://: this does not name a bucket; write s3://BUCKET/KEY, as in s3://bucket/train/*.parquet, without credentials"},
		"a secret": {false, nil, nil, "s3://AKID:hunter2/+@bucket/x", nil, status.Unsupported,
			"s3://bucket/x: this does not name a bucket; write s3://BUCKET/KEY, as in s3://bucket/train/*.parquet, without credentials"},
		"another bucket": {false, nil, nil, "s3://other/x", nil, status.NotFound,
			"s3://other/: there is no such bucket; check its name, the endpoint and the credentials"},
		"another key": {false, nil, nil, "s3://bucket/none", nil, status.NotFound,
			"s3://bucket/none: the bucket has no such file or directory; check the name, also for capital letters"},
		"removed": {false, nil, nil, "s3://bucket/x", func(s *far.Store) { delete(s.Files, "/bucket/x") }, status.NotFound,
			"s3://bucket/x: the bucket has no such file; check the name, also for capital letters"},
		"changed": {false, nil, nil, "s3://bucket/x", func(s *far.Store) { s.Put("x", make([]byte, 99_999)) }, status.DataLoss,
			`s3://bucket/x: the file has changed since it was opened: it had ETag "100000-1", and has ETag "99999-2"` + changed},
		"changed, careless": {false, nil, func(s *far.Store) { s.Careless = true }, "s3://bucket/x", func(s *far.Store) { s.Put("x", make([]byte, 99_999)) }, status.DataLoss,
			`s3://bucket/x: the file has changed since it was opened: it had ETag "100000-1", and has ETag "99999-2"` + changed},
		"changed in Google": {true, nil, nil, "gs://bucket/x", func(s *far.Store) { s.Put("x", make([]byte, 99_999)) }, status.DataLoss,
			"gs://bucket/x: the file has changed since it was opened: it had generation 1000001, and has generation 1000002" + changed},
		"key": {false, map[string]string{"AWS_ACCESS_KEY_ID": "OTHER"}, nil, "s3://bucket/x", nil, status.IO,
			"s3://bucket/x: the store does not know the access key (the environment); check which store the key is for, and the endpoint (AWS_ENDPOINT_URL)"},
		"secret": {false, map[string]string{"AWS_SECRET_ACCESS_KEY": "hunter3"}, nil, "s3://bucket/x", nil, status.IO,
			"s3://bucket/x: the signature of the request, with the credentials (the environment), does not match it in the region us-east-1; check the secret key, the endpoint, and that no proxy changes the host or the path"},
		"expired": {false, nil, func(s *far.Store) { s.Expired = s.Token }, "s3://bucket/x", nil, status.IO,
			"s3://bucket/: the credentials (the environment) have expired (ExpiredToken); log in again, or renew the credentials"},
		"clock": {false, nil, func(s *far.Store) { s.Says = "RequestTimeTooSkewed" }, "s3://bucket/x", nil, status.IO,
			"s3://bucket/x: the clock of this machine is wrong: the clock of the store says 2026-01-02T03:04:05Z; set the clock of this machine"},
		"archived": {false, nil, nil, "s3://bucket/x", func(s *far.Store) { s.Says = "InvalidObjectState" }, status.IO,
			"s3://bucket/x: the file is in an archive and cannot be read; restore it from its archive first"},
		"redirect": {false, nil, func(s *far.Store) { s.Says = "PermanentRedirect" }, "s3://bucket/x", nil, status.Unsupported,
			"s3://bucket/: the store redirects to another address (301 PermanentRedirect); give the endpoint that it leads to"},
		"charges": {false, nil, func(s *far.Store) { s.Pays = true }, "s3://bucket/x", nil, status.IO,
			"s3://bucket/x: access is denied (403 AccessDenied), with the credentials (the environment); allow s3:ListBucket and s3:GetObject, or use other credentials; for a bucket that charges the reader, set AWS_REQUEST_PAYER=requester"},
		"denied": {false, nil, func(s *far.Store) { s.Unlisted = true }, "s3://bucket/none", nil, status.NotFound,
			"s3://bucket/none: the bucket has no such file; check the name, also for capital letters"},
		"anonymous": {false, map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_SESSION_TOKEN": "", "AWS_EC2_METADATA_DISABLED": "true"}, nil, "s3://bucket/x", nil, status.IO,
			"s3://bucket/x: access is denied (403 AccessDenied), without credentials; allow s3:ListBucket and s3:GetObject, or use other credentials; for a bucket that charges the reader, set AWS_REQUEST_PAYER=requester"},
		"Google charges": {true, nil, func(s *far.Store) { s.Pays = true }, "gs://bucket/x", nil, status.IO,
			"gs://bucket/: the bucket charges the reader; set GOOGLE_CLOUD_QUOTA_PROJECT to the project that pays"},
	} {
		t.Run(what, func(t *testing.T) {
			stand := standIn
			if c.google {
				stand = standInGoogle
			}
			s, op := stand(t, c.env)
			s.Put("x", make([]byte, 100_000))
			if c.store != nil {
				c.store(s)
			}
			change := func() {}
			if c.change != nil {
				change = func() { c.change(s) }
			}
			err := read(op, c.name, change)
			if status.CodeOf(err) != c.code || err.Error() != "arrowio: "+c.want {
				t.Errorf("got  %v\nwant arrowio: %s", err, c.want)
			}
			if e, ok := errors.AsType[*status.Error](err); ok && (e.Attr("path") == nil || strings.Contains(fmt.Sprintf("%+v", e), "hunter")) {
				t.Errorf("%+v", e)
			}
		})
	}
}

// TestAccess: expired credentials are renewed once, in a listing and in the middle of a file. Another region is learned
// from the store, a setting makes the reader pay, and without credentials requests have no signature.
func TestAccess(t *testing.T) {
	for what, c := range map[string]struct {
		google bool
		env    map[string]string
		store  func(s *far.Store)
		expire func(s *far.Store, env map[string]string)
		most   int64 // requests
	}{
		"expired": {expire: func(s *far.Store, env map[string]string) {
			s.Expired, s.Token = s.Token, "next"
			env["AWS_SESSION_TOKEN"] = "next"
		}, most: 5},
		"expired in Google":  {google: true, expire: func(s *far.Store, _ map[string]string) { s.Token = "token 2" }, most: 5},
		"another region":     {store: func(s *far.Store) { s.Region = "eu-west-1" }, most: 5},
		"no region":          {env: map[string]string{"AWS_REGION": "https://x"}, most: 4},
		"payer":              {env: map[string]string{"AWS_REQUEST_PAYER": "requester"}, store: func(s *far.Store) { s.Pays = true }, most: 4},
		"payer in Google":    {google: true, env: map[string]string{"GOOGLE_CLOUD_QUOTA_PROJECT": "p"}, store: func(s *far.Store) { s.Pays = true }, most: 4},
		"anonymous":          {env: map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_SESSION_TOKEN": "", "AWS_EC2_METADATA_DISABLED": "true"}, store: func(s *far.Store) { s.ID = "" }, most: 4},
		"unlisted":           {store: func(s *far.Store) { s.Unlisted = true }, most: 4},
		"unlisted in Google": {google: true, store: func(s *far.Store) { s.Unlisted = true }, most: 4},
		"a stored encoding":  {store: func(s *far.Store) { s.Packed = true }, most: 4},
		"one of two names":   {env: map[string]string{"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:1"}, most: 0},
	} {
		t.Run(what, func(t *testing.T) {
			if c.env == nil {
				c.env = map[string]string{}
			}
			stand, name := standIn, "s3://bucket/x"
			if c.google {
				stand, name = standInGoogle, "gs://bucket/x"
			}
			s, op := stand(t, c.env)
			s.Put("x", make([]byte, 100_000))
			if c.store != nil {
				c.store(s)
			}
			err := read(op, name, func() {
				if c.expire != nil {
					c.expire(s, c.env)
				}
			})
			if err == nil && c.most > 0 {
				var b blob.Blob
				fresh := newOpener(op.web, op.store) // it has listed nothing
				if b, err = fresh.Open(t.Context(), blob.Entry{Name: name}); err == nil {
					_ = b.Close()
				}
				c.most += 3
			}
			if (err != nil) != (c.most == 0) || op.Counts().Requests-c.most > 0 && c.most > 0 {
				t.Errorf("%v after %+v", err, op.Counts())
			}
		})
	}
}

// TestAddresses: buckets of AWS have hosts of their own, if their names can be parts of a host.
func TestAddresses(t *testing.T) {
	for _, c := range []struct{ endpoint, region, bucket, want string }{
		{"", "", "data", "https://data.s3.us-east-1.amazonaws.com/a%20b"},
		{"", "eu-west-1", "my.data", "https://s3.eu-west-1.amazonaws.com/my.data/a%20b"},
		{"", "cn-north-1", "data", "https://data.s3.cn-north-1.amazonaws.com.cn/a%20b"},
		{"https://x.r2.cloudflarestorage.com", "auto", "data", "https://x.r2.cloudflarestorage.com/data/a%20b"},
		{"http://host:9000/base/", "", "data", "http://host:9000/base/data/a%20b"},
	} {
		env := map[string]string{"AWS_ENDPOINT_URL": c.endpoint, "AWS_REGION": c.region}
		op, err := NewS3(remote.NewOpener(remote.New(nil)), func(name string) string { return env[name] })
		if err != nil {
			t.Fatal(err)
		}
		at := join(op.store.address(c.bucket), "a b")
		if at.String() != c.want || op.store.(*s3).bucketOf(at) != c.bucket {
			t.Errorf("%s, of the bucket %s", at, op.store.(*s3).bucketOf(at))
		}
	}
	for _, bad := range []string{"host", "ftp://host", "http://user:secret@host", "https://"} {
		_, err := NewS3(remote.NewOpener(remote.New(nil)), func(string) string { return bad })
		if status.CodeOf(err) != status.InvalidArgument || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestEmulator: an emulator of Google gets no token.
func TestEmulator(t *testing.T) {
	s := far.NewStore("bucket")
	s.Google = true
	server := httptest.NewServer(s)
	defer server.Close()
	s.Put("x", make([]byte, 100))
	op, err := NewGoogle(remote.NewOpener(remote.New(nil)), func(name string) string {
		return map[string]string{"STORAGE_EMULATOR_HOST": strings.TrimPrefix(server.URL, "http://"), "GCE_METADATA_HOST": "127.0.0.1:1"}[name]
	})
	if err == nil {
		err = read(op, "gs://bucket/x", nil)
	}
	if err != nil {
		t.Error(err)
	}
	for _, r := range s.Seen() {
		if r.Header.Get("Authorization") != "" {
			t.Error(r.Header)
		}
	}
}

// TestHostileListings: a listing that breaks the protocol is an error.
func TestHostileListings(t *testing.T) {
	const item = "<Contents><Key>x</Key><ETag>e</ETag><Size>9</Size></Contents>"
	wrap := func(text string) string { return "<ListBucketResult>" + text + "</ListBucketResult>" }
	for page, want := range map[string]string{
		"":                                 "a page is not valid XML: EOF",
		"<html><body>log in</body></html>": "a page is not valid XML: expected element type <ListBucketResult> but have <html>",
		"<ListBucketResult><Contents>":     "a page is not valid XML: XML syntax error on line 1: unexpected EOF",
		wrap(strings.Replace(item, "9", "-9", 1)):                                         `it has the name "x" with -9 bytes`,
		wrap(strings.Replace(item, "9", "many", 1)):                                       `a page is not valid XML: strconv.ParseInt: parsing "many": invalid syntax`,
		wrap("<EncodingType>url</EncodingType><Contents><Key>%zz</Key></Contents>"):       `it has the name "" with 0 bytes`,
		wrap("<IsTruncated>true</IsTruncated>" + item):                                    "a page does not say where the next one begins",
		wrap("<CommonPrefixes><Prefix>x</Prefix></CommonPrefixes>"):                       "a directory in it has no slash at its end",
		`<!DOCTYPE a [<!ENTITY b "bbbb">]>` + wrap("<Contents><Key>&b;</Key></Contents>"): "a page is not valid XML: XML syntax error on line 1: invalid character entity &b;",
		wrap(strings.Repeat(item, maxPage/len(item)+1)):                                   "a page has more than 8388608 bytes",
		strings.Repeat("<a>", 100_000):                                                    "a page is not valid XML: expected element type <ListBucketResult> but have <a>",
	} {
		s, op := standIn(t, nil)
		s.FirstPage = cmp.Or(page, " ")
		_, err := op.List(t.Context(), "s3://bucket")
		want := "arrowio: s3://bucket/: the listing of the store is damaged: " + want + "; check the endpoint and the proxy, and try again"
		if status.CodeOf(err) != status.DataLoss || err.Error() != want {
			t.Errorf("%.60q\ngot  %v\nwant %s", page, err, want)
		}
	}
	s, op := standIn(t, nil)
	s.FirstPage = wrap("<IsTruncated>true</IsTruncated><NextContinuationToken>a</NextContinuationToken>")
	s.Put("x", []byte{1})
	if list, err := op.List(t.Context(), "s3://bucket"); err != nil || len(list) != 1 {
		t.Errorf("an empty page: %v, %v", list, err)
	}
}

// FuzzParse: no page makes parse panic or return a name outside the prefix.
func FuzzParse(f *testing.F) {
	f.Add("<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>a%2Fb+c</Key><ETag>e</ETag><Size>9</Size></Contents></ListBucketResult>")
	f.Add("<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken><CommonPrefixes><Prefix>a/</Prefix></CommonPrefixes></ListBucketResult>")
	f.Add("<!DOCTYPE a [<!ENTITY b \"&b;\">]><ListBucketResult>&b;</ListBucketResult>")
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range []store{&s3{}, &google{}} {
			entries, _, err := parse(s, "s3://b/a", "s3://b/", []byte(text))
			for _, e := range entries {
				if err != nil || !strings.HasPrefix(e.Name, "s3://b/a") || e.Size < 0 {
					t.Errorf("%+v, %v", e, err)
				}
			}
			explain(s, &http.Response{StatusCode: 500}, []byte(text))
		}
	})
}
