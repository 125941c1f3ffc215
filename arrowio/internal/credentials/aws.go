package credentials

import (
	"context"

	"github.com/meshfeed/meshfeed/core/status"
)

// Key signs requests to S3. The zero value stands for requests without a signature.
type Key struct{ ID, Secret, Token string }

// AWS finds keys as the SDKs of AWS do. It is safe for concurrent use.
type AWS struct {
	getenv func(string) string
	keys   keeper[Key]
}

// NewAWS returns the credentials of an environment.
func NewAWS(getenv func(string) string) *AWS {
	a := &AWS{getenv: getenv}
	a.keys.fetch = a.find
	return a
}

// Key returns a key that has not expired. It waits if none is known yet.
func (a *AWS) Key(ctx context.Context) (Key, error) { return a.keys.get(ctx) }

// Refresh forgets the present key, because the store says that it has expired.
func (a *AWS) Refresh() { a.keys.forget() }

// Source says where the present key came from, for errors: "the environment", or "profile dev of ~/.aws/config".
func (a *AWS) Source() string { return a.keys.source() }

// Region returns the region of the environment, or "".
func (a *AWS) Region() string {
	if region := a.getenv("AWS_REGION"); region != "" {
		return region
	}
	return a.getenv("AWS_DEFAULT_REGION")
}

// find returns the key of the first source that has one.
func (a *AWS) find(context.Context) (lease[Key], error) {
	k := Key{a.getenv("AWS_ACCESS_KEY_ID"), a.getenv("AWS_SECRET_ACCESS_KEY"), a.getenv("AWS_SESSION_TOKEN")}
	if (k.ID == "") != (k.Secret == "") {
		return lease[Key]{}, status.New(status.InvalidArgument, "arrowio", "the environment has only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY").
			WithHint("set both, or remove both to use a profile")
	}
	if k.ID == "" {
		return lease[Key]{source: "no credentials"}, nil
	}
	return lease[Key]{value: k, source: "the environment"}, nil
}
