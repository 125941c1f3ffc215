package bucket

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"regexp"
	"time"

	"github.com/meshfeed/meshfeed/arrowio/internal/remote"
	"github.com/meshfeed/meshfeed/core/status"
)

// failure is what a store says about a request that it refuses. Its message is left out, because it may quote
// the request.
type failure struct {
	XMLName xml.Name `xml:"Error"`
	Code    string   `xml:"Code"`
	Region  string   `xml:"Region"`
}

// codes matches the codes of failures.
var codes = regexp.MustCompile(`^[A-Za-z0-9.]{1,60}$`)

// text returns the status of an answer, with the code of its failure.
func (f failure) text(r *http.Response) string {
	if f.Code == "" {
		return fmt.Sprintf("%d %s", r.StatusCode, http.StatusText(r.StatusCode))
	}
	return fmt.Sprintf("%d %s", r.StatusCode, f.Code)
}

func refuse(code status.Code, hint, format string, args ...any) *remote.Refusal {
	return &remote.Refusal{Code: code, What: fmt.Sprintf(format, args...), Hint: hint}
}

// denial returns the refusal of a request that its credentials do not allow, or that needs some.
func denial(r *http.Response, f failure, hint, source string) *remote.Refusal {
	if r.Request.Header.Get("Authorization") == "" {
		return refuse(status.IO, hint, "access is denied (%s), without credentials", f.text(r))
	}
	return refuse(status.IO, hint, "access is denied (%s), with the credentials (%s)", f.text(r), source)
}

// explain says why a store refuses a request. Failures that may pass are left to the engine.
func explain(s store, r *http.Response, body []byte) *remote.Refusal {
	var f failure
	if err := xml.Unmarshal(body, &f); err != nil || !codes.MatchString(f.Code) {
		f = failure{}
	}
	if r.StatusCode >= 500 || r.StatusCode == http.StatusTooManyRequests || r.StatusCode == http.StatusRequestTimeout {
		return nil
	}
	if f.Code == "RequestTimeTooSkewed" {
		says, _ := http.ParseTime(r.Header.Get("Date"))
		return refuse(status.IO, "set the clock of this machine", "the clock of this machine is wrong: the clock of the store says %s", says.UTC().Format(time.RFC3339))
	}
	if refusal := s.explain(r, f); refusal != nil {
		return refusal
	}
	switch {
	case f.Code == "NoSuchBucket":
		return refuse(status.NotFound, "check its name, the endpoint and the credentials", "there is no such bucket")
	case r.StatusCode == http.StatusNotFound:
		return refuse(status.NotFound, "check the name, also for capital letters", "the bucket has no such file")
	case r.StatusCode < 400:
		return refuse(status.Unsupported, "give the endpoint that it leads to", "the store redirects to another address (%s)", f.text(r))
	}
	return refuse(status.IO, "look the code up in the documents of the store", "the store answers %s", f.text(r))
}
