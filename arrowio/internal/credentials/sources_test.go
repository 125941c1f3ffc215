package credentials

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/meshfeed/meshfeed/core/status"
)

// cloud stands in for the services that give credentials. All secrets have the word planted.
type cloud struct {
	*testing.T
	url    string
	home   string
	answer string       // instead of all answers; may quote requests with %s
	code   int          // of all answers, if not 0
	asked  atomic.Int64 // requests
	busy   atomic.Int64 // requests to answer with 503 first
	role   string       // of the instance
}

func newCloud(t *testing.T) *cloud {
	c := &cloud{T: t, home: t.TempDir(), role: "worker"}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

// file writes a file in the home directory, with the address of the server for URL.
func (c *cloud) file(name, text string) string {
	c.Helper()
	path := filepath.Join(c.home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		c.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "URL", c.url)), 0o600); err != nil {
		c.Fatal(err)
	}
	return path
}

// env returns an environment with the home directory and without a metadata service.
func (c *cloud) env(pairs ...string) func(string) string {
	m := map[string]string{"HOME": c.home, "AWS_EC2_METADATA_DISABLED": "true", "NO_GCE_CHECK": "true"}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = strings.NewReplacer("URL", c.url, "HOME", c.home).Replace(pairs[i+1])
	}
	return func(name string) string { return m[name] }
}

const expiry = "2999-01-01T00:00:00Z"

func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	c.asked.Add(1)
	switch {
	case c.busy.Add(-1) >= 0:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case c.code != 0:
		w.WriteHeader(c.code)
		fmt.Fprintf(w, strings.ReplaceAll(c.answer, "%s", "%[1]s"), fmt.Sprint(r.URL, r.Header, string(body)))
		return
	}
	form, _ := url.ParseQuery(string(body))
	w.Header().Set("Content-Type", "application/json")
	header := func(name, want string) {
		if got := r.Header.Get(name); got != want {
			c.Errorf("%s: %s is %q, want %q", r.URL.Path, name, got, want)
		}
	}
	switch r.URL.Path {
	case "/": // the Security Token Service
		action, name := form.Get("Action"), "WEB"
		switch action {
		case "AssumeRole":
			if name = form.Get("RoleArn")[strings.LastIndex(form.Get("RoleArn"), "/")+1:]; !c.signed(r, body) {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			if form.Get("ExternalId") == "" || form.Get("DurationSeconds") != "900" || !strings.HasPrefix(form.Get("RoleSessionName"), "meshfeed-") {
				c.Errorf("form: %v", form)
			}
		case "AssumeRoleWithWebIdentity":
			if form.Get("WebIdentityToken") != "planted.jwt" || form.Get("RoleSessionName") != "run-1" || r.Header.Get("Authorization") != "" {
				c.Errorf("form: %v", form)
			}
		}
		fmt.Fprintf(w, `<%sResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><%[1]sResult><Credentials><AccessKeyId>%s</AccessKeyId><SecretAccessKey>planted-%[2]s</SecretAccessKey><SessionToken>planted-token</SessionToken><Expiration>%[3]s</Expiration></Credentials></%[1]sResult></%[1]sResponse>`, action, name, expiry)
	case "/federation/credentials":
		header("X-Amz-Sso_bearer_token", "planted-bearer")
		fmt.Fprintf(w, `{"roleCredentials":{"accessKeyId":"SSO%s","secretAccessKey":"planted-sso","sessionToken":"planted-token","expiration":32472144000000}}`, r.URL.Query().Get("role_name"))
	case "/container":
		header("Authorization", "planted-pod")
		fmt.Fprintf(w, `{"AccessKeyId":"POD","SecretAccessKey":"planted-pod","Token":"planted-token","Expiration":%q}`, expiry)
	case "/latest/api/token":
		_, _ = w.Write([]byte("planted-imds"))
	case "/latest/meta-data/iam/security-credentials/":
		header("X-Aws-Ec2-Metadata-Token", "planted-imds")
		if c.role == "" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write([]byte(c.role))
	case "/latest/meta-data/iam/security-credentials/worker":
		header("X-Aws-Ec2-Metadata-Token", "planted-imds")
		fmt.Fprintf(w, `{"Code":"Success","AccessKeyId":"EC2","SecretAccessKey":"planted-ec2","Token":"planted-token","Expiration":%q}`, expiry)
	case "/token": // of Google, for keys and for users
		fmt.Fprintf(w, `{"access_token":"planted-%s","expires_in":3599,"token_type":"Bearer"}`, form.Get("grant_type"))
	case "/exchange":
		if form.Get("subject_token") != "planted.jwt" {
			c.Errorf("form: %v", form)
		}
		fmt.Fprint(w, `{"access_token":"planted-federated","issued_token_type":"urn:ietf:params:oauth:token-type:access_token","token_type":"Bearer","expires_in":3599}`)
	case "/impersonate":
		header("Authorization", "Bearer planted-federated")
		fmt.Fprintf(w, `{"accessToken":"planted-impersonated","expireTime":%q}`, expiry)
	default:
		c.Errorf("request for %s", r.URL)
	}
}

// signed reports whether a request for a role has the signature of the key that it names.
func (c *cloud) signed(r *http.Request, body []byte) bool {
	for _, key := range []Key{{"BASE", "planted-base", ""}, {"first", "planted-first", "planted-token"}, {"EC2", "planted-ec2", "planted-token"}, {"POD", "planted-pod", "planted-token"}} {
		again := r.Clone(r.Context())
		at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
		if err != nil {
			c.Error(err)
		}
		Sign(again, key, "eu-west-1", "sts", string(body), at)
		if again.Header.Get("Authorization") == r.Header.Get("Authorization") {
			return true
		}
	}
	return false
}

// config has one profile of each kind.
const config = `# comment
[default]
region = eu-west-1 ; comment
[profile base]
aws_access_key_id = BASE
aws_secret_access_key: planted-base
s3 =
  aws_access_key_id = nested
[profile "first role"]
role_arn = arn:aws:iam::1:role/first
source_profile = base
external_id = x
duration_seconds = 900
[profile second]
ROLE_ARN=arn:aws:iam::1:role/second
source_profile = first role
external_id = x
duration_seconds = 900
[profile ec2]
role_arn = arn:aws:iam::1:role/third
credential_source = Ec2InstanceMetadata
external_id = x
duration_seconds = 900
[profile pod]
role_arn = arn:aws:iam::1:role/third
credential_source = EcsContainer
external_id = x
duration_seconds = 900
[profile web]
role_arn = arn:aws:iam::1:role/web
web_identity_token_file = HOME/jwt
role_session_name = run-1
[profile mfa]
role_arn = arn:aws:iam::1:role/mfa
source_profile = base
mfa_serial = arn:aws:iam::1:mfa/me
[profile loop]
role_arn = arn:aws:iam::1:role/loop
source_profile = loop2
[profile loop2]
role_arn = arn:aws:iam::1:role/loop2
source_profile = loop
[profile nosource]
role_arn = arn:aws:iam::1:role/none
[profile wrongsource]
role_arn = arn:aws:iam::1:role/none
source_profile = missing
[profile nokey]
role_arn = arn:aws:iam::1:role/none
source_profile = default
[profile half]
aws_access_key_id = HALF
[profile program]
credential_process = echo '{"Version":1,"AccessKeyId":"PROG","SecretAccessKey":"planted-program"}'
[profile failing]
credential_process = echo planted-output; echo planted-error >&2; exit 3
[profile babbling]
credential_process = echo planted-output
[profile team]
sso_session = my team
sso_account_id = 1
sso_role_name = Reader
[sso-session my team]
sso_region = eu-west-1
sso_start_url = https://team.awsapps.com/start
[profile old]
sso_start_url = https://old.awsapps.com/start
sso_region = eu-west-1
sso_account_id = 1
sso_role_name = Reader
[profile nosession]
sso_start_url = https://none.awsapps.com/start
sso_region = eu-west-1
sso_account_id = 1
sso_role_name = Reader
[profile nosso]
sso_session = my team
`

// withConfig returns a cloud with the file config and an SSO session.
func withConfig(t *testing.T) *cloud {
	c := newCloud(t)
	c.file(".aws/config", strings.ReplaceAll(config, "HOME", c.home))
	c.file(".aws/credentials", "[mixed]\naws_access_key_id=MIXED\naws_secret_access_key=planted-mixed\naws_session_token=planted-token\n")
	c.file("jwt", "planted.jwt\n")
	c.file("pod", "planted-pod\n")
	for session, until := range map[string]string{"my team": expiry, "https://old.awsapps.com/start": "2020-01-01T00:00:00UTC"} {
		sum := sha1.Sum([]byte(session))
		c.file(".aws/sso/cache/"+hex.EncodeToString(sum[:])+".json", fmt.Sprintf(`{"accessToken":"planted-bearer","expiresAt":%q}`, until))
	}
	return c
}

var all = []string{
	"AWS_ENDPOINT_URL_STS", "URL", "AWS_ENDPOINT_URL_SSO", "URL", "AWS_EC2_METADATA_SERVICE_ENDPOINT", "URL/", "AWS_EC2_METADATA_DISABLED", "false",
	"AWS_CONTAINER_CREDENTIALS_FULL_URI", "URL/container", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "HOME/pod", "AWS_CONTAINER_AUTHORIZATION_TOKEN", "planted-old",
	"AWS_REGION", "eu-west-1",
}

// TestSources: each source of a key, in their order, and the name of each.
func TestSources(t *testing.T) {
	c := withConfig(t)
	for _, test := range []struct {
		env          []string
		key, source  string
		requests     int64
		withoutToken bool
	}{
		{[]string{"AWS_ACCESS_KEY_ID", "A", "AWS_SECRET_ACCESS_KEY", "planted-A", "AWS_SESSION_TOKEN", "planted-token", "AWS_PROFILE", "base"}, "A", "the environment", 0, false},
		{[]string{"AWS_PROFILE", "base", "AWS_WEB_IDENTITY_TOKEN_FILE", "HOME/jwt", "AWS_ROLE_ARN", "arn:web"}, "BASE", "profile base of ~/.aws/config", 0, true},
		{[]string{"AWS_DEFAULT_PROFILE", "mixed"}, "MIXED", "profile mixed of ~/.aws/credentials", 0, false},
		{[]string{"AWS_PROFILE", "first role"}, "first", "role arn:aws:iam::1:role/first by profile base of ~/.aws/config", 1, false},
		{[]string{"AWS_PROFILE", "second"}, "second", "role arn:aws:iam::1:role/second by role arn:aws:iam::1:role/first by profile base of ~/.aws/config", 2, false},
		{[]string{"AWS_PROFILE", "ec2"}, "third", "role arn:aws:iam::1:role/third by the role of this instance", 4, false},
		{[]string{"AWS_PROFILE", "pod"}, "third", "role arn:aws:iam::1:role/third by the role of this container", 2, false},
		{[]string{"AWS_PROFILE", "web"}, "WEB", "role arn:aws:iam::1:role/web by the web identity of profile web of ~/.aws/config", 1, false},
		{[]string{"AWS_PROFILE", "program"}, "PROG", "credential_process of profile program of ~/.aws/config", 0, true},
		{[]string{"AWS_PROFILE", "team"}, "SSOReader", "SSO of profile team of ~/.aws/config", 1, false},
		{[]string{"AWS_WEB_IDENTITY_TOKEN_FILE", "HOME/jwt", "AWS_ROLE_ARN", "arn:web", "AWS_ROLE_SESSION_NAME", "run-1"}, "WEB", "role arn:web by the web identity of the environment", 1, false},
		{nil, "POD", "the role of this container", 1, false},
		{[]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI", ""}, "EC2", "the role of this instance", 3, false},
		{[]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI", "", "AWS_EC2_METADATA_DISABLED", "true"}, "", "no credentials", 0, true},
		{[]string{"AWS_NO_SIGN_REQUEST", "true", "AWS_ACCESS_KEY_ID", "A", "AWS_SECRET_ACCESS_KEY", "planted-A"}, "", "no credentials", 0, true},
	} {
		c.asked.Store(0)
		a := NewAWS(c.env(append(append([]string{}, all...), test.env...)...), via)
		key, err := a.Key(t.Context())
		if err != nil || key.ID != test.key || a.Source() != test.source || c.asked.Load() != test.requests ||
			strings.HasPrefix(key.Secret, "planted-") != (key.ID != "") || key.Token == "planted-token" == test.withoutToken {
			t.Errorf("%q: got %q of %q in %d requests, %v; want %q of %q in %d", test.env, key, a.Source(), c.asked.Load(), err, test.key, test.source, test.requests)
		}
	}
	c.role = "" // an instance without a role
	a := NewAWS(c.env(append(append([]string{}, all...), "AWS_CONTAINER_CREDENTIALS_FULL_URI", "")...), via)
	if key, err := a.Key(t.Context()); err != nil || key != (Key{}) {
		t.Errorf("%v, %v", key, err)
	}
	if region := NewAWS(c.env(), via).Region(); region != "eu-west-1" {
		t.Errorf("the region of the profile is %q", region)
	}
}

// TestErrors compares whole messages. None of them has a secret.
func TestErrors(t *testing.T) {
	c := withConfig(t)
	host := "127.0.0.1"
	for _, test := range []struct {
		env  []string
		code int
		want string
	}{
		{[]string{"AWS_ACCESS_KEY_ID", "A"}, 0, "the environment has only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; set both, or remove both to use a profile"},
		{[]string{"AWS_PROFILE", "none"}, 0, `AWS_PROFILE is "none", and neither ~/.aws/config nor ~/.aws/credentials has that profile; correct AWS_PROFILE, or remove it to use other credentials`},
		{[]string{"AWS_CONFIG_FILE", "HOME/broken"}, 0, "~/broken: line 2 is neither [section] nor name = value; correct it; its text is not shown here, because it may be secret"},
		{[]string{"AWS_PROFILE", "half"}, 0, "profile half of ~/.aws/config has only one of aws_access_key_id and aws_secret_access_key; give both"},
		{[]string{"AWS_PROFILE", "mfa"}, 0, "profile mfa of ~/.aws/config has mfa_serial, and nothing here can ask for a code; get a session with the code first (aws configure export-credentials --format env), or use SSO"},
		{[]string{"AWS_PROFILE", "loop"}, 0, "profile loop of ~/.aws/config: source_profile leads back to this profile; let the last one have a key"},
		{[]string{"AWS_PROFILE", "nosource"}, 0, "profile nosource of ~/.aws/config has role_arn, and nothing says which credentials may take that role; give source_profile, or credential_source with Environment, Ec2InstanceMetadata or EcsContainer"},
		{[]string{"AWS_PROFILE", "wrongsource"}, 0, `profile wrongsource of ~/.aws/config: source_profile is "missing", and there is no such profile; correct it`},
		{[]string{"AWS_PROFILE", "nokey"}, 0, "profile nokey of ~/.aws/config: default has no credentials to take role arn:aws:iam::1:role/none; correct it"},
		{[]string{"AWS_PROFILE", "failing"}, 0, "credential_process of profile failing of ~/.aws/config failed (exit status 3); run it in a terminal to see its messages"},
		{[]string{"AWS_PROFILE", "babbling"}, 0, "credential_process of profile babbling of ~/.aws/config gives no key: expected AccessKeyId, SecretAccessKey and a time as Expiration; look at what it gives; that is not shown here, because it may be secret"},
		{[]string{"AWS_PROFILE", "old"}, 0, "profile old of ~/.aws/config uses SSO, and the session expired at 2020-01-01T00:00:00Z; run: aws sso login --profile old"},
		{[]string{"AWS_PROFILE", "nosession"}, 0, "profile nosession of ~/.aws/config uses SSO, and there is no session; run: aws sso login --profile nosession"},
		{[]string{"AWS_PROFILE", "nosso"}, 0, "profile nosso of ~/.aws/config needs sso_account_id, sso_role_name and sso_region; run: aws configure sso --profile nosso"},
		{[]string{"AWS_PROFILE", "team", "AWS_ENDPOINT_URL_SSO", "http://127.0.0.1:1"}, 0, "SSO of profile team of ~/.aws/config: no answer came from 127.0.0.1: connect: connection refused; check the network, the certificates, and the proxy (HTTPS_PROXY, NO_PROXY)"},
		{[]string{"AWS_PROFILE", "team"}, 401, "profile team of ~/.aws/config: the SSO portal refuses role Reader (code 401); run: aws sso login --profile team, or check the role and the account"},
		{[]string{"AWS_PROFILE", "first role"}, 403, "role arn:aws:iam::1:role/first by profile base of ~/.aws/config: the Security Token Service refuses (code 403, AccessDenied); check the role, its trust policy, and the clock of this machine"},
		{[]string{"AWS_PROFILE", "first role", "AWS_ENDPOINT_URL_STS", "", "AWS_REGION", "evil.example/?"}, 0, `the region "evil.example/?" is not a name of a region; set AWS_REGION to a name such as eu-west-1`},
		{[]string{"AWS_WEB_IDENTITY_TOKEN_FILE", "HOME/jwt"}, 0, "AWS_WEB_IDENTITY_TOKEN_FILE is set, and AWS_ROLE_ARN is not; set it, or remove AWS_WEB_IDENTITY_TOKEN_FILE"},
		{[]string{"AWS_WEB_IDENTITY_TOKEN_FILE", "HOME/jwt", "AWS_ROLE_ARN", "arn:web"}, 302, "role arn:web by the web identity of the environment: the Security Token Service refuses (code 302, AccessDenied); check the role, its trust policy, and the clock of this machine"},
		{[]string{"AWS_WEB_IDENTITY_TOKEN_FILE", "HOME/gone", "AWS_ROLE_ARN", "arn:web"}, 0, c.home + "/gone: there is no such file or directory; " + c.home + " has no gone"},
		{nil, 403, "the agent of this container (" + host + ") gives no key (code 403); give the task or the pod a role, and check the token of AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"},
		{nil, 200, "the role of this container gives no key: expected AccessKeyId, SecretAccessKey and a time as Expiration; look at what it gives; that is not shown here, because it may be secret"},
		{[]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://evil.example/x"}, 0, "AWS_CONTAINER_CREDENTIALS_FULL_URI leads to evil.example without TLS, where others could read the key; give an address with https"},
		{[]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI", "planted:"}, 0, "AWS_CONTAINER_CREDENTIALS_FULL_URI is not a URL; correct it"},
	} {
		c.file("broken", "[default]\nplanted-line\n")
		c.code, c.answer = test.code, "<ErrorResponse><Error><Code>AccessDenied</Code><Message>%s</Message></Error></ErrorResponse>"
		_, err := NewAWS(c.env(append(append([]string{}, all...), test.env...)...), via).Key(t.Context())
		if err == nil || err.Error() != "arrowio: "+test.want {
			t.Errorf("%q:\ngot  %v\nwant %s", test.env, err, test.want)
		}
		if text := fmt.Sprintf("%+v %#v", err, err); strings.Contains(text, "planted") {
			t.Errorf("%q: the error has a secret: %s", test.env, text)
		}
	}
}

// TestBusy: a service that is busy for a moment is asked again, with the whole request.
func TestBusy(t *testing.T) {
	c := withConfig(t)
	c.busy.Store(2)
	key, err := NewAWS(c.env(append(append([]string{}, all...), "AWS_PROFILE", "first role")...), via).Key(t.Context())
	if err != nil || key.ID != "first" || c.asked.Load() != 3 {
		t.Errorf("%v, %v in %d requests", key, err, c.asked.Load())
	}
}

// TestGoogle: each kind of file, and its errors.
func TestGoogle(t *testing.T) {
	c := newCloud(t)
	c.file("jwt", "planted.jwt\n")
	pair, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	private, _ := json.Marshal(string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(pair)})))
	federated := `{"type":"external_account","audience":"x","subject_token_type":"urn:ietf:params:oauth:token-type:jwt","token_url":"URL/exchange","credential_source":{"file":"` + c.home + `/jwt"}`
	files := map[string]string{
		"service": `{"type":"service_account","client_email":"a@b","private_key_id":"planted-id","token_uri":"URL/token","private_key":` + string(private) + `}`,
		"user":    `{"type":"authorized_user","client_id":"x","client_secret":"planted-client","refresh_token":"planted-refresh","token_uri":"URL/token"}`,
		"pool":    federated + "}",
		"acting":  federated + `,"service_account_impersonation_url":"URL/impersonate"}`,
		"nojwt":   strings.Replace(federated, "/jwt", "/planted", 1) + "}",
		"badkey":  `{"type":"service_account","client_email":"a@b","token_uri":"URL/token","private_key":"planted"}`,
		"broken":  `{"type":"service_account","private_key":"planted`,
		"other":   `{"type":"planted"}`,
		"down":    `{"type":"authorized_user","refresh_token":"planted-refresh","token_uri":"http://127.0.0.1:1/token"}`,
	}
	for _, test := range []struct {
		file string
		code int
		want string // a token, or an error
	}{
		{"service", 0, "planted-urn:ietf:params:oauth:grant-type:jwt-bearer"},
		{"user", 0, "planted-refresh_token"},
		{"pool", 0, "planted-federated"},
		{"acting", 0, "planted-impersonated"},
		{"service", 400, "service_account of FILE: 127.0.0.1 gives no token (code 400); check that the account exists and has this key, what it may do, and the clock of this machine"},
		{"user", 400, "authorized_user of FILE: 127.0.0.1 gives no token (code 400); run: gcloud auth application-default login"},
		{"user", 307, "authorized_user of FILE: 127.0.0.1 gives no token (code 307); run: gcloud auth application-default login"},
		{"pool", 403, "external_account of FILE: 127.0.0.1 gives no token (code 403); check that the account exists and has this key, what it may do, and the clock of this machine"},
		{"nojwt", 0, "external_account of FILE is damaged, or names a file that cannot be read; make the file again; its text is not shown here, because it is secret"},
		{"badkey", 0, "service_account of FILE is damaged, or names a file that cannot be read; make the file again; its text is not shown here, because it is secret"},
		{"broken", 0, "FILE has no credentials: expected JSON with a type such as service_account, authorized_user or external_account; make it with: gcloud auth application-default login, or download the key of a service account"},
		{"other", 0, "FILE has no credentials: expected JSON with a type such as service_account, authorized_user or external_account; make it with: gcloud auth application-default login, or download the key of a service account"},
		{"down", 0, "authorized_user of FILE: no answer came from 127.0.0.1: connect: connection refused; check the network, the certificates, and the proxy (HTTPS_PROXY, NO_PROXY)"},
	} {
		path := c.file(test.file+".json", files[test.file])
		c.code, c.answer = test.code, `{"error":"invalid_grant","error_description":"%s"}`
		g := NewGoogle(c.env("GOOGLE_APPLICATION_CREDENTIALS", path), via)
		token, err := g.Token(t.Context())
		want := "arrowio: " + strings.ReplaceAll(test.want, "FILE", path)
		if err == nil && (token != test.want || !strings.HasSuffix(g.Source(), " of "+path)) || err != nil && err.Error() != want {
			t.Errorf("%s: got  %q of %s, %v\nwant %s", test.file, token, g.Source(), err, want)
		}
		if text := fmt.Sprintf("%+v %#v", err, err); strings.Contains(text, "planted") {
			t.Errorf("%s: the error has a secret: %s", test.file, text)
		}
	}
	c.code = 0
	c.file(".config/gcloud/application_default_credentials.json", files["user"])
	if token, err := NewGoogle(c.env(), via).Token(t.Context()); err != nil || token != "planted-refresh_token" {
		t.Errorf("%q, %v", token, err)
	}
	if token, err := NewGoogle(c.env("CLOUDSDK_CONFIG", "HOME/none"), via).Token(t.Context()); err != nil || token != "" {
		t.Errorf("%q, %v", token, err)
	}
	if _, err := NewGoogle(c.env("GOOGLE_APPLICATION_CREDENTIALS", "HOME/none"), via).Token(t.Context()); status.CodeOf(err) != status.NotFound {
		t.Error(err)
	}
}

// FuzzINI: any text is parsed, or has a line that is named.
func FuzzINI(f *testing.F) {
	f.Add(config)
	f.Add("[a]\n b = c\n  d = e\nf=g#h\n")
	f.Add("\ufeff[profile  'x y'] # z\r\n=\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		sections, wrong := parseINI(text)
		lines := strings.Count(text, "\n") + 1
		if wrong < 0 || wrong > lines || (wrong == 0) != (sections != nil) {
			t.Fatalf("%d sections, line %d of %d", len(sections), wrong, lines)
		}
		for name, s := range sections {
			for key, value := range s {
				again, wrong := parseINI("[" + name + "]\n" + key + "=" + value)
				if wrong != 0 || again[name][key] != value {
					t.Fatalf("[%s] %s = %q is read again as %q, line %d", name, key, value, again[name][key], wrong)
				}
			}
		}
	})
}
