package credentials

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/meshfeed/meshfeed/arrowio/internal/local"
)

// role is a role to take.
type role struct{ arn, external, session, seconds, region string }

// webIdentity returns the key of the role and the token that the environment names.
func (a *AWS) webIdentity(ctx context.Context) (l lease[Key], err error) {
	file, arn := a.getenv("AWS_WEB_IDENTITY_TOKEN_FILE"), a.getenv("AWS_ROLE_ARN")
	if file == "" {
		return l, nil
	}
	if arn == "" {
		return l, invalid("set it, or remove AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE is set, and AWS_ROLE_ARN is not")
	}
	return a.exchange(ctx, role{arn: arn, session: a.getenv("AWS_ROLE_SESSION_NAME")}, file, "the environment")
}

// exchange takes a role with the token in a file.
func (a *AWS) exchange(ctx context.Context, r role, file, from string) (lease[Key], error) {
	token, err := local.Folder{}.Read(file)
	if err != nil {
		return lease[Key]{}, err
	}
	form := url.Values{"Action": {"AssumeRoleWithWebIdentity"}, "WebIdentityToken": {strings.TrimSpace(string(token))}}
	return a.take(ctx, r, form, Key{}, "the web identity of "+from)
}

// assume takes a role with a key.
func (a *AWS) assume(ctx context.Context, r role, with lease[Key]) (lease[Key], error) {
	return a.take(ctx, r, url.Values{"Action": {"AssumeRole"}}, with.value, with.source)
}

// take asks the Security Token Service for the key of a role.
func (a *AWS) take(ctx context.Context, r role, form url.Values, key Key, by string) (l lease[Key], err error) {
	region := cmp.Or(a.first("AWS_REGION", "AWS_DEFAULT_REGION"), r.region, a.Region())
	at, err := a.service("sts", region, "AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL")
	if err != nil {
		return l, err
	}
	if r.session == "" {
		r.session = "meshfeed-" + strconv.FormatInt(time.Now().Unix(), 10)
	}
	for name, value := range map[string]string{"Version": "2011-06-15", "RoleArn": r.arn, "RoleSessionName": r.session, "ExternalId": r.external, "DurationSeconds": r.seconds} {
		if value != "" {
			form.Set(name, value)
		}
	}
	source, body := "role "+r.arn+" by "+by, form.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(body))
	if err != nil {
		return l, invalid("correct AWS_ENDPOINT_URL_STS", "the address of the Security Token Service is not a URL")
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	Sign(request, key, cmp.Or(region, "us-east-1"), "sts", body, time.Now())
	code, _, text, err := (&client{via: a.via}).send(request, source)
	if err != nil {
		return l, err
	}
	var answer struct {
		Assumed   grant  `xml:"AssumeRoleResult>Credentials"`
		Exchanged grant  `xml:"AssumeRoleWithWebIdentityResult>Credentials"`
		Code      string `xml:"Error>Code"`
	}
	wrong := xml.NewDecoder(bytes.NewReader(text)).Decode(&answer)
	if code != http.StatusOK {
		return l, refused("check the role, its trust policy, and the clock of this machine", "%s: the Security Token Service refuses (code %d%s)", source, code, word(answer.Code))
	}
	g := answer.Assumed
	if g.AccessKeyID == "" {
		g = answer.Exchanged
	}
	if wrong != nil {
		g = grant{}
	}
	return g.key(source)
}

// words matches the codes of errors.
var words = regexp.MustCompile(`^[A-Za-z.]{1,64}$`)

// word returns ", CODE" for errors. Other text of a service is not shown, because it may quote the request.
func word(code string) string {
	if words.MatchString(code) {
		return ", " + code
	}
	return ""
}

var regions = regexp.MustCompile(`^[a-z0-9-]{1,40}$`)

// IsRegion reports whether a text may be the name of a region.
func IsRegion(name string) bool { return regions.MatchString(name) }

// Domain returns the domain in which the services of a region are.
func Domain(region string) string {
	for prefix, other := range map[string]string{"cn-": "amazonaws.com.cn", "us-iso-": "c2s.ic.gov", "us-isob-": "sc2s.sgov.gov", "eusc-": "amazonaws.eu"} {
		if strings.HasPrefix(region, prefix) {
			return other
		}
	}
	return "amazonaws.com"
}

// service returns the address of a service of AWS: the first variable, or the address in a region.
func (a *AWS) service(name, region string, variables ...string) (string, error) {
	if at := a.first(variables...); at != "" {
		return at, nil
	}
	if region == "" {
		return "https://" + name + ".amazonaws.com", nil
	}
	if !IsRegion(region) {
		return "", invalid("set AWS_REGION to a name such as eu-west-1", "the region %q is not a name of a region", region)
	}
	return "https://" + name + "." + region + "." + Domain(region), nil
}

// grant is a key with its expiry, as services and programs write it.
type grant struct {
	AccessKeyID     string `json:"accessKeyId" xml:"AccessKeyId"`
	SecretAccessKey string `json:"secretAccessKey"`
	SessionToken    string `json:"sessionToken"`
	Token           string `json:"token"`
	Expiration      json.RawMessage
}

// keyOf parses the key in a document.
func keyOf(text []byte, source string) (lease[Key], error) {
	var g grant
	if json.Unmarshal(text, &g) != nil {
		g = grant{}
	}
	return g.key(source)
}

// key returns the key of a grant.
func (g grant) key(source string) (l lease[Key], err error) {
	expires, ok := timeOf(string(g.Expiration))
	if g.AccessKeyID == "" || g.SecretAccessKey == "" || !ok {
		return l, refused("look at what it gives; that is not shown here, because it may be secret",
			"%s gives no key: expected AccessKeyId, SecretAccessKey and a time as Expiration", source)
	}
	return lease[Key]{Key{g.AccessKeyID, g.SecretAccessKey, g.SessionToken + g.Token}, source, expires}, nil
}

// timeOf parses a time of RFC 3339, or milliseconds since 1970. It returns the zero time for "".
func timeOf(text string) (t time.Time, ok bool) {
	text = strings.Replace(strings.Trim(text, `"`), "UTC", "Z", 1)
	if text == "" || text == "null" {
		return t, true
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.UnixMilli(n), true
	}
	t, err := time.Parse(time.RFC3339, text)
	return t, err == nil
}

// sso returns the key of a profile for the session that "aws sso login" began.
func (p *profiles) sso(ctx context.Context, name string) (l lease[Key], err error) {
	s, label := p.sections[name], p.label(name)
	session, region := s["sso_start_url"], s["sso_region"]
	if s["sso_session"] != "" {
		session = s["sso_session"]
		region = p.sections["sso-session "+session]["sso_region"]
	}
	if region == "" || s["sso_account_id"] == "" || s["sso_role_name"] == "" {
		return l, invalid("run: aws configure sso --profile "+name, "%s needs sso_account_id, sso_role_name and sso_region", label)
	}
	sum := sha1.Sum([]byte(session))
	text := local.Text(p.first("HOME", "USERPROFILE"), ".aws", "sso", "cache", hex.EncodeToString(sum[:])+".json")
	var cached struct{ AccessToken, ExpiresAt string }
	_ = json.Unmarshal([]byte(text), &cached)
	expires, ok := timeOf(cached.ExpiresAt)
	login := "run: aws sso login --profile " + name
	if cached.AccessToken == "" || !ok {
		return l, refused(login, "%s uses SSO, and there is no session", label)
	}
	if time.Now().After(expires) {
		return l, refused(login, "%s uses SSO, and the session expired at %s", label, expires.UTC().Format(time.RFC3339))
	}
	at, err := p.service("portal.sso", region, "AWS_ENDPOINT_URL_SSO")
	if err != nil {
		return l, err
	}
	query := url.Values{"account_id": {s["sso_account_id"]}, "role_name": {s["sso_role_name"]}}
	code, _, body, err := (&client{via: p.via}).ask(ctx, http.MethodGet, at+"/federation/credentials?"+query.Encode(), map[string]string{"X-Amz-Sso_bearer_token": cached.AccessToken}, "SSO of "+label)
	if err != nil {
		return l, err
	}
	if code != http.StatusOK {
		return l, refused(login+", or check the role and the account", "%s: the SSO portal refuses role %s (code %d)", label, s["sso_role_name"], code)
	}
	var answer struct{ RoleCredentials grant }
	if json.Unmarshal(body, &answer) != nil {
		answer.RoleCredentials = grant{}
	}
	return answer.RoleCredentials.key("SSO of " + label)
}
