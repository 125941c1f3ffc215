package credentials

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"github.com/meshfeed/meshfeed/core/status"
)

// Key signs requests to S3. The zero value stands for requests without a signature.
type Key struct{ ID, Secret, Token string }

// AWS finds keys as the SDKs of AWS do. The first of these sources is used:
//
//   - AWS_NO_SIGN_REQUEST=true: no key
//   - AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN
//   - the profile of AWS_PROFILE (profile.go)
//   - AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN (sts.go)
//   - the profile "default"
//   - AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or …_FULL_URI (machine.go)
//   - the metadata service of EC2, unless AWS_EC2_METADATA_DISABLED=true
//
// It is safe for concurrent use.
type AWS struct {
	getenv func(string) string
	via    http.RoundTripper // to services on other machines
	keys   keeper[Key]
	region func() string
}

// NewAWS returns the credentials of an environment. Services on other machines are asked via a transport.
func NewAWS(getenv func(string) string, via http.RoundTripper) *AWS {
	a := &AWS{getenv: getenv, via: via}
	a.keys.fetch, a.region = a.find, sync.OnceValue(a.findRegion)
	return a
}

// Key returns a key that has not expired. It waits if none is known yet.
func (a *AWS) Key(ctx context.Context) (Key, error) { return a.keys.get(ctx) }

// Refresh forgets the present key, because the store says that it has expired.
func (a *AWS) Refresh() { a.keys.forget() }

// Source says where the present key came from, for errors: "the environment", or "profile dev of ~/.aws/config".
func (a *AWS) Source() string { return a.keys.source() }

// Region returns the region of the environment or of the profile, or "". It is looked for once.
func (a *AWS) Region() string { return a.region() }

func (a *AWS) findRegion() string {
	if region := a.first("AWS_REGION", "AWS_DEFAULT_REGION"); region != "" {
		return region
	}
	p, err := a.profiles()
	if err != nil {
		return "" // Key returns the error
	}
	return p.sections[p.chosen]["region"]
}

// find returns the key of the first source that has one.
func (a *AWS) find(ctx context.Context) (lease[Key], error) {
	if strings.EqualFold(a.getenv("AWS_NO_SIGN_REQUEST"), "true") {
		return lease[Key]{source: nothing}, nil
	}
	if l, err := a.environment(); err != nil || l.source != "" {
		return l, err
	}
	p, err := a.profiles()
	if err != nil {
		return lease[Key]{}, err
	}
	profile := func(ctx context.Context) (lease[Key], error) { return p.key(ctx, p.chosen, nil) }
	sources := []func(context.Context) (lease[Key], error){a.webIdentity, profile, a.container, a.instance}
	if p.named {
		sources[0], sources[1] = profile, a.webIdentity
	}
	for _, source := range sources {
		if l, err := source(ctx); err != nil || l.source != "" {
			return l, err
		}
	}
	return lease[Key]{source: nothing}, nil
}

// nothing is the source of anonymous requests.
const nothing = "no credentials"

// environment returns the key of the environment. Its source is "" if the environment has no key.
func (a *AWS) environment() (l lease[Key], err error) {
	k := Key{a.getenv("AWS_ACCESS_KEY_ID"), a.getenv("AWS_SECRET_ACCESS_KEY"), a.getenv("AWS_SESSION_TOKEN")}
	switch {
	case (k.ID == "") != (k.Secret == ""):
		return l, invalid("set both, or remove both to use a profile", "the environment has only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	case k.ID != "":
		l = lease[Key]{value: k, source: "the environment"}
	}
	return l, nil
}

// first returns the first variable that is set, or "".
func (a *AWS) first(names ...string) string {
	for _, name := range names {
		if value := a.getenv(name); value != "" {
			return value
		}
	}
	return ""
}

// invalid returns the error for settings that cannot be used.
func invalid(hint, format string, args ...any) error {
	return status.Errorf(status.InvalidArgument, "arrowio", format, args...).WithHint("%s", hint)
}

// refused returns the error for a service or a program that gave no credentials.
func refused(hint, format string, args ...any) error {
	return status.Errorf(status.IO, "arrowio", format, args...).WithHint("%s", hint)
}
