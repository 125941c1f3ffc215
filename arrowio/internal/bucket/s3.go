package bucket

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/meshfeed/meshfeed/arrowio/internal/credentials"
	"github.com/meshfeed/meshfeed/arrowio/internal/remote"
	"github.com/meshfeed/meshfeed/core/status"
)

// s3 is S3 of AWS, or a store with its protocol at an endpoint.
type s3 struct {
	keys     *credentials.AWS
	endpoint *url.URL // ends in a slash; nil for AWS
	pays     bool     // for requests to buckets whose owner does not

	mu      sync.Mutex
	regions map[string]string // by bucket, as the store said
}

// NewS3 returns an opener of S3 with the settings of an environment: the credentials and the region as AWS's tools take
// them, AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL for another store, and AWS_REQUEST_PAYER=requester.
func NewS3(web *remote.Opener, getenv func(string) string) (*Opener, error) {
	s := &s3{keys: credentials.NewAWS(getenv, web.Transport()), pays: getenv("AWS_REQUEST_PAYER") == "requester", regions: map[string]string{}}
	for _, name := range []string{"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"} {
		if text := getenv(name); text != "" {
			at, err := endpoint(name, text)
			if err != nil {
				return nil, err
			}
			s.endpoint = at
			break
		}
	}
	web.Stored = true
	return newOpener(web, s), nil
}

// endpoint parses the address of a store in a variable. The result ends in a slash.
func endpoint(variable, text string) (*url.URL, error) {
	at, err := url.Parse(strings.TrimSuffix(text, "/") + "/")
	if err != nil || at.Host == "" || at.Scheme != "https" && at.Scheme != "http" || at.User != nil || at.RawQuery != "" {
		return nil, status.Errorf(status.InvalidArgument, "arrowio", "%s is not the address of a store", variable).
			WithHint("set it as in https://minio.example.com:9000, or remove it")
	}
	return at, nil
}

// hostable matches buckets that can be the first part of the name of a host.
var hostable = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$`)

func (s *s3) address(bucket string) *url.URL {
	if s.endpoint != nil {
		return join(s.endpoint, bucket+"/")
	}
	region := s.region(bucket)
	host := "s3." + region + "." + credentials.Domain(region)
	if hostable.MatchString(bucket) {
		return &url.URL{Scheme: "https", Host: bucket + "." + host, Path: "/"}
	}
	return &url.URL{Scheme: "https", Host: host, Path: "/" + bucket + "/"}
}

// bucketOf returns the bucket that an address leads to.
func (s *s3) bucketOf(at *url.URL) string {
	path := at.Path
	switch {
	case s.endpoint != nil:
		path = strings.TrimPrefix(path, s.endpoint.Path)
	case !strings.HasPrefix(at.Host, "s3."):
		bucket, _, _ := strings.Cut(at.Host, ".")
		return bucket
	}
	bucket, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return bucket
}

func (s *s3) place(bucket string) string { return s.region(bucket) }

// region returns the region of a bucket.
func (s *s3) region(bucket string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if region := s.regions[bucket]; region != "" {
		return region
	}
	if region := s.keys.Region(); credentials.IsRegion(region) {
		return region
	}
	return "us-east-1"
}

// move notes where a bucket is, as the store says the first time.
func (s *s3) move(bucket, region string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.regions[bucket] == "" && credentials.IsRegion(region) {
		s.regions[bucket] = region
	}
}

func (s *s3) version(c content) string {
	if c.ETag == "" {
		return ""
	}
	return "ETag " + c.ETag
}

func (s *s3) authorize(ctx context.Context, r *http.Request) error {
	key, err := s.keys.Key(ctx)
	if err != nil {
		return err
	}
	if s.pays {
		r.Header.Set("X-Amz-Request-Payer", "requester")
	}
	credentials.Sign(r, key, s.region(s.bucketOf(r.URL)), "s3", "", time.Now())
	return nil
}

// renew makes the next request use another key than this one.
func (s *s3) renew(r *http.Request) {
	key, err := s.keys.Key(r.Context())
	signed := strings.Contains(r.Header.Get("Authorization"), "Credential="+key.ID+"/") && r.Header.Get("X-Amz-Security-Token") == key.Token
	if err == nil && signed { // else another request has renewed it
		s.keys.Refresh()
	}
}

func (s *s3) source() string { return s.keys.Source() }

func (s *s3) explain(r *http.Response, f failure) *remote.Refusal {
	bucket, source := s.bucketOf(r.Request.URL), s.source()
	region := f.Region
	if told := r.Header.Get("X-Amz-Bucket-Region"); told != "" {
		region = told
	}
	switch {
	case credentials.IsRegion(region) && region != s.region(bucket):
		asked := s.region(bucket)
		s.move(bucket, region)
		return refuse(status.IO, "set AWS_REGION to the region of the bucket", "the bucket is in the region %s, and was looked for in %s", region, asked)
	case f.Code == "ExpiredToken" || f.Code == "TokenRefreshRequired" || f.Code == "InvalidToken":
		s.renew(r.Request)
		refusal := refuse(status.IO, "log in again, or renew the credentials", "the credentials (%s) have expired (%s)", source, f.Code)
		refusal.Again = true
		return refusal
	case f.Code == "InvalidAccessKeyId":
		return refuse(status.IO, "check which store the key is for, and the endpoint (AWS_ENDPOINT_URL)", "the store does not know the access key (%s)", source)
	case f.Code == "SignatureDoesNotMatch":
		return refuse(status.IO, "check the secret key, the endpoint, and that no proxy changes the host or the path",
			"the signature of the request, with the credentials (%s), does not match it in the region %s", source, s.region(bucket))
	case f.Code == "InvalidObjectState":
		return refuse(status.IO, "restore it from its archive first", "the file is in an archive and cannot be read")
	case r.StatusCode == http.StatusForbidden || r.StatusCode == http.StatusUnauthorized:
		hint := "allow s3:ListBucket and s3:GetObject, or use other credentials"
		if !s.pays {
			hint += "; for a bucket that charges the reader, set AWS_REQUEST_PAYER=requester"
		}
		return denial(r, f, hint, source)
	}
	return nil
}
