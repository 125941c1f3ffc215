package credentials

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meshfeed/meshfeed/core/status"
)

// env returns a getenv of name and value pairs.
func env(pairs ...string) func(string) string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return m[name] }
}

// TestKeeper: a lease is used until it expires, and fetched again before that.
func TestKeeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fetches atomic.Int64
		var refuse atomic.Bool
		k := &keeper[int64]{fetch: func(context.Context) (lease[int64], error) {
			n, refused := fetches.Add(1), refuse.Load()
			time.Sleep(time.Second)
			if refused {
				return lease[int64]{}, errors.New("refused")
			}
			return lease[int64]{n, "a test", time.Now().Add(time.Hour)}, nil
		}}
		get := func(value int64) {
			t.Helper()
			if got, err := k.get(t.Context()); err != nil || got != value {
				t.Errorf("got %d, %v, want %d", got, err, value)
			}
		}
		want := func(value, fetched int64) {
			t.Helper()
			get(value)
			synctest.Wait()
			if n := fetches.Load(); n != fetched {
				t.Errorf("%d fetches, want %d", n, fetched)
			}
		}
		if k.source() != "no credentials" {
			t.Error(k.source())
		}
		var all sync.WaitGroup
		for range 9 {
			all.Go(func() { get(1) }) // one fetch for all
		}
		all.Wait()
		time.Sleep(54 * time.Minute)
		want(1, 1)
		time.Sleep(time.Minute)
		refuse.Store(true)
		want(1, 2) // the old one is valid while the next is fetched
		time.Sleep(2 * time.Second)
		want(1, 2) // that fetch failed, so the next one has to wait
		time.Sleep(time.Minute)
		want(1, 3)
		time.Sleep(2 * time.Second)
		refuse.Store(false)
		time.Sleep(time.Minute)
		want(1, 4)
		time.Sleep(2 * time.Second)
		want(4, 4)
		k.forget()
		want(5, 5)
		refuse.Store(true)
		k.forget()
		if _, err := k.get(t.Context()); err == nil || err.Error() != "refused" {
			t.Error(err)
		}
		refuse.Store(false)
		ctx, cancel := context.WithCancel(t.Context())
		all.Go(func() {
			if _, err := k.get(ctx); status.CodeOf(err) != status.Cancelled {
				t.Errorf("a caller that gave up got %v", err)
			}
		})
		all.Go(func() { get(7) })
		synctest.Wait()
		cancel() // ends that caller, and not the fetch
		all.Wait()
	})
}

// TestExpired: a credential that this machine takes for expired is an error about its clock.
func TestExpired(t *testing.T) {
	k := &keeper[int]{fetch: func(context.Context) (lease[int], error) {
		return lease[int]{1, "profile dev", time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)}, nil
	}}
	_, err := k.get(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), "arrowio: the credentials of profile dev expired at 2020-01-01T00:00:00Z, and the clock of this machine says 20") {
		t.Error(err)
	}
}

// TestEnvironment: static keys of the environment.
func TestEnvironment(t *testing.T) {
	a := NewAWS(env("AWS_ACCESS_KEY_ID", "AKID", "AWS_SECRET_ACCESS_KEY", "secret", "AWS_SESSION_TOKEN", "token", "AWS_DEFAULT_REGION", "eu-west-1"), via)
	if key, err := a.Key(t.Context()); err != nil || key != (Key{"AKID", "secret", "token"}) || a.Source() != "the environment" || a.Region() != "eu-west-1" {
		t.Errorf("%v, %v, %s, %s", key, err, a.Source(), a.Region())
	}
}

// TestMachine: the token of a metadata server.
func TestMachine(t *testing.T) {
	code := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Metadata-Flavor") != "Google" || r.URL.Path != "/computeMetadata/v1/instance/service-accounts/default/token" || r.URL.Query().Get("scopes") != scope {
			t.Errorf("%s %v", r.URL, r.Header)
		}
		w.WriteHeader(code)
		_, _ = w.Write([]byte(`{"access_token":"ya29.secret","expires_in":3599,"token_type":"Bearer"}`))
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	g := NewGoogle(env("GCE_METADATA_HOST", host), via)
	if token, err := g.Token(t.Context()); err != nil || token != "ya29.secret" || g.Source() != "the service account of this machine" {
		t.Errorf("%q, %v, %s", token, err, g.Source())
	}
	code = http.StatusForbidden
	g.Refresh()
	if _, err := g.Token(t.Context()); err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "code 403") {
		t.Error(err)
	}
	code = http.StatusNotFound
	if token, err := g.Token(t.Context()); err != nil || token != "" || g.Source() != "no credentials" {
		t.Errorf("%q, %v, %s", token, err, g.Source())
	}
}

// TestSign compares signatures with examples in the manual of S3, and with one of botocore.
func TestSign(t *testing.T) {
	key := Key{ID: "AKIAIOSFODNN7EXAMPLE", Secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}
	for query, want := range map[string]string{
		"?lifecycle":           "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
		"?prefix=J&max-keys=2": "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
	} {
		r := httptest.NewRequest(http.MethodGet, "https://examplebucket.s3.amazonaws.com/"+query, nil)
		Sign(r, key, "us-east-1", "s3", "", time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC))
		if got := r.Header.Get("Authorization"); got != "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature="+want {
			t.Errorf("%s: %s", query, got)
		}
	}
	post := httptest.NewRequest(http.MethodPost, "https://sts.eu-west-1.amazonaws.com", nil)
	post.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	Sign(post, Key{"AKID", "SECRET", "TOKEN=="}, "eu-west-1", "sts", "Action=AssumeRole&RoleArn=x%2Fy", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	if _, got, _ := strings.Cut(post.Header.Get("Authorization"), "Signature="); got != "8a9c932d2e0d94c5557b0be8c9125c963d67bb883185cc9143253b9aa66d6315" {
		t.Errorf("botocore signs a request for a role in another way than %s", got)
	}
	r := httptest.NewRequest(http.MethodGet, "https://examplebucket.s3.amazonaws.com/", nil)
	Sign(r, Key{}, "us-east-1", "s3", "", time.Now())
	if len(r.Header) != 0 {
		t.Errorf("no key: %v", r.Header)
	}
}

// noted is a transport without a network. It notes the hosts.
type noted map[string]bool

func (n noted) RoundTrip(r *http.Request) (*http.Response, error) {
	n[r.URL.Host] = true
	return nil, errors.New("no network")
}

// TestTransport: services on other machines are asked via the transport that is given, which has the proxies and the authorities.
func TestTransport(t *testing.T) {
	c := newCloud(t)
	c.file("jwt", "planted-jwt")
	user := c.file("user.json", `{"type":"authorized_user","client_id":"x","client_secret":"planted","refresh_token":"planted"}`)
	synctest.Test(t, func(t *testing.T) {
		hosts := noted{}
		_, err := NewAWS(c.env("AWS_WEB_IDENTITY_TOKEN_FILE", "HOME/jwt", "AWS_ROLE_ARN", "arn:x", "AWS_REGION", "cn-north-1"), hosts).Key(context.Background())
		_, also := NewGoogle(c.env("GOOGLE_APPLICATION_CREDENTIALS", user), hosts).Token(context.Background())
		if want := (noted{"sts.cn-north-1.amazonaws.com.cn": true, "oauth2.googleapis.com": true}); err == nil || also == nil || !maps.Equal(hosts, want) {
			t.Errorf("%v, %v, %v", hosts, err, also)
		}
	})
}

// via sends requests as the tests expect them: to addresses of this machine.
var via = &http.Transport{DisableKeepAlives: true}
