package far

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Store is a stand-in for an object store with one bucket. Its objects are files of a server at /BUCKET/KEY, so that they
// have the faults of the server. Change its fields between requests only.
type Store struct {
	*Server
	Bucket string
	Google bool // Google Cloud Storage, with generations; else S3
	Page   int  // names of a page of a listing; 0 for 1,000

	ID, Secret, Token string // that are needed; "" for none
	Expired           string // a token that was right before
	Region            string // that signatures must be for
	Pays              bool   // the reader pays
	Unlisted          bool   // listings are denied
	Says              string // a code with which all requests are refused
	FirstPage         string // replaces the first page of each listing
}

// NewStore returns a store with an empty bucket.
func NewStore(bucket string) *Store {
	s := &Store{Server: &Server{Files: map[string][]byte{}}, Bucket: bucket, Region: "us-east-1"}
	s.Server.Front = s.answer
	return s
}

// Put changes an object.
func (s *Store) Put(key string, data []byte) { s.Server.Put("/"+s.Bucket+"/"+key, data) }

// generation returns the generation of an object.
func (s *Store) generation(path string) int { return 1_000_000 + s.version(path) }

// answer answers what a server of files does not.
func (s *Store) answer(w http.ResponseWriter, r *http.Request) bool {
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	path := "/" + bucket + "/" + key
	data, found := s.file(path)
	generation := r.Header.Get("X-Goog-If-Generation-Match")
	payer := r.Header.Get("X-Amz-Request-Payer") == "requester" || r.Header.Get("X-Goog-User-Project") != ""
	code, region := s.denied(r)
	switch {
	case s.Says != "":
		refuse(w, map[string]int{"RequestTimeTooSkewed": 403, "SlowDown": 503, "InvalidObjectState": 403, "PermanentRedirect": 301}[s.Says], s.Says, "")
	case code == "AuthorizationHeaderMalformed":
		refuse(w, 400, code, region)
	case code != "" && s.Google:
		refuse(w, 401, code, "")
	case code != "":
		refuse(w, map[bool]int{true: 400, false: 403}[code == "ExpiredToken"], code, "")
	case s.Pays && !payer && s.Google:
		refuse(w, 400, "UserProjectMissing", "")
	case s.Pays && !payer:
		refuse(w, 403, "AccessDenied", "")
	case s.Unlisted && key == "":
		refuse(w, 403, "AccessDenied", "")
	case bucket != s.Bucket:
		refuse(w, 404, "NoSuchBucket", "")
	case key == "" && r.URL.Query().Get("list-type") == "2":
		s.list(w, r.URL.Query())
	case !found:
		refuse(w, 404, "NoSuchKey", "")
	case s.Google && generation != "" && generation != fmt.Sprint(s.generation(path)):
		refuse(w, 412, "PreconditionFailed", "")
	case len(data) == 0 && r.Header.Get("Range") != "" && !s.Google:
		refuse(w, 416, "InvalidRange", "")
	default:
		if s.Google {
			w.Header().Set("X-Goog-Generation", fmt.Sprint(s.generation(path)))
		}
		return false
	}
	return true
}

func refuse(w http.ResponseWriter, status int, code, region string) {
	w.Header().Set("Content-Type", "application/xml")
	w.Header().Set("Date", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Format(http.TimeFormat))
	w.WriteHeader(status)
	fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>%s</Code><Message>it quotes a secret</Message>`, code)
	if region != "" {
		fmt.Fprintf(w, "<Region>%s</Region>", region)
	}
	fmt.Fprint(w, "<RequestId>1</RequestId></Error>")
}

// list writes a page of a listing.
func (s *Store) list(w http.ResponseWriter, q url.Values) {
	if s.FirstPage != "" && q.Get("continuation-token") == "" {
		fmt.Fprint(w, s.FirstPage)
		return
	}
	type object struct {
		Key, ETag, Generation string
		Size                  int
	}
	prefix, delimiter, after := q.Get("prefix"), q.Get("delimiter"), max(q.Get("start-after"), q.Get("continuation-token"))
	items := map[string]object{} // by key, or by directory with its slash
	for path, data := range s.files() {
		key, inside := strings.CutPrefix(path, "/"+s.Bucket+"/")
		rest, begins := strings.CutPrefix(key, prefix)
		if !inside || !begins {
			continue
		}
		if dir, _, deeper := strings.Cut(rest, "/"); deeper && delimiter == "/" {
			items[prefix+dir+"/"] = object{}
			continue
		}
		o := object{Key: key, ETag: s.tag(path), Size: len(data)}
		if s.Google {
			o.Generation = fmt.Sprint(s.generation(path))
		}
		items[key] = o
	}
	var keys []string
	for key := range items {
		if key > after {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	var out struct {
		XMLName               xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListBucketResult"`
		Name, EncodingType    string
		IsTruncated           bool
		NextContinuationToken string   `xml:",omitempty"`
		Contents              []object `xml:"Contents"`
		CommonPrefixes        []struct{ Prefix string }
	}
	out.Name, out.EncodingType = s.Bucket, q.Get("encoding-type")
	if page := cmp.Or(s.Page, 1000); len(keys) > page {
		keys, out.IsTruncated, out.NextContinuationToken = keys[:page], true, keys[page-1]
	}
	for _, key := range keys {
		o := items[key]
		if o.Key == "" {
			out.CommonPrefixes = append(out.CommonPrefixes, struct{ Prefix string }{url.QueryEscape(key)})
			continue
		}
		o.Key = url.QueryEscape(o.Key)
		out.Contents = append(out.Contents, o)
	}
	text, _ := xml.Marshal(out)
	w.Header().Set("Content-Length", fmt.Sprint(len(text)))
	_, _ = w.Write(text)
}

// denied returns the code with which a request is refused, or "", and the right region.
func (s *Store) denied(r *http.Request) (code, region string) {
	auth := r.Header.Get("Authorization")
	if s.Google {
		switch {
		case s.Token == "" || auth == "Bearer "+s.Token:
			return "", ""
		case auth == "":
			return "AccessDenied", ""
		}
		return "AuthenticationRequired", ""
	}
	token := r.Header.Get("X-Amz-Security-Token")
	switch {
	case s.ID == "" && auth == "":
		return "", ""
	case auth == "" || s.ID == "":
		return "AccessDenied", ""
	case s.Expired != "" && token == s.Expired:
		return "ExpiredToken", ""
	}
	var credential, signed, signature string
	for part := range strings.SplitSeq(strings.TrimPrefix(auth, "AWS4-HMAC-SHA256 "), ", ") {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "Credential":
			credential = value
		case "SignedHeaders":
			signed = value
		case "Signature":
			signature = value
		}
	}
	scope := strings.Split(credential, "/")
	switch {
	case len(scope) != 5 || scope[0] != s.ID || token != s.Token:
		return "InvalidAccessKeyId", ""
	case scope[2] != s.Region:
		return "AuthorizationHeaderMalformed", s.Region
	case signature != s.signature(r, scope, strings.Split(signed, ";")):
		return "SignatureDoesNotMatch", ""
	}
	return "", ""
}

// signature signs a request as AWS's documents say, from its decoded path and query. All headers of S3 must be signed.
func (s *Store) signature(r *http.Request, scope, signed []string) string {
	escape := func(text string, slash bool) (out string) {
		for _, c := range []byte(text) {
			if c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || strings.ContainsRune("-._~", rune(c)) || slash && c == '/' {
				out += string(rune(c))
			} else {
				out += fmt.Sprintf("%%%02X", c)
			}
		}
		return out
	}
	var pairs, headers []string
	for name, values := range r.URL.Query() {
		for _, v := range values {
			pairs = append(pairs, escape(name, false)+"="+escape(v, false))
		}
	}
	slices.Sort(pairs)
	for _, name := range signed {
		value := r.Header.Get(name)
		if name == "host" {
			value = r.Host
		}
		headers = append(headers, name+":"+strings.TrimSpace(value)+"\n")
	}
	for name := range r.Header {
		if name = strings.ToLower(name); strings.HasPrefix(name, "x-amz-") && !slices.Contains(signed, name) {
			return "a header is not signed"
		}
	}
	canonical := strings.Join([]string{r.Method, escape(r.URL.Path, true), strings.Join(pairs, "&"), strings.Join(headers, ""), strings.Join(signed, ";"), r.Header.Get("X-Amz-Content-Sha256")}, "\n")
	text := fmt.Sprintf("AWS4-HMAC-SHA256\n%s\n%s\n%x", r.Header.Get("X-Amz-Date"), strings.Join(scope[1:], "/"), sha256.Sum256([]byte(canonical)))
	key := []byte("AWS4" + s.Secret)
	for _, part := range append(slices.Clone(scope[1:]), text) {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(part))
		key = h.Sum(nil)
	}
	return fmt.Sprintf("%x", key)
}
