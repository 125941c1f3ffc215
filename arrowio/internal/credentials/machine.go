package credentials

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/arrowio/internal/local"
)

// agents are the addresses of the services that give credentials to containers without TLS.
var agents = []string{"169.254.170.2", "169.254.170.23", "fd00:ec2::23", "localhost"}

// container returns the key that ECS or EKS has for this container.
func (a *AWS) container(ctx context.Context) (l lease[Key], err error) {
	const source = "the role of this container"
	at := a.getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI")
	if relative := a.getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); relative != "" {
		at = "http://" + agents[0] + "/" + strings.TrimPrefix(relative, "/")
	}
	if at == "" {
		return l, nil
	}
	where, err := url.Parse(at)
	if err != nil || where.Host == "" {
		return l, invalid("correct it", "AWS_CONTAINER_CREDENTIALS_FULL_URI is not a URL")
	}
	host := where.Hostname()
	if where.Scheme != "https" && !slices.Contains(agents, host) && !net.ParseIP(host).IsLoopback() {
		return l, invalid("give an address with https", "AWS_CONTAINER_CREDENTIALS_FULL_URI leads to %s without TLS, where others could read the key", host)
	}
	token := a.getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN")
	if file := a.getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); file != "" {
		text, err := local.Folder{}.Read(file)
		if err != nil {
			return l, err
		}
		token = string(text)
	}
	header := map[string]string{}
	if token = strings.TrimSpace(token); token != "" {
		header["Authorization"] = token
	}
	code, _, text, err := (&client{via: nearby}).ask(ctx, http.MethodGet, at, header, source)
	if err != nil {
		return l, err
	}
	if code != http.StatusOK {
		return l, refused("give the task or the pod a role, and check the token of AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "the agent of this container (%s) gives no key (code %d)", host, code)
	}
	return keyOf(text, source)
}

// instance returns the key of the role of an EC2 instance. Its source is "" on other machines.
func (a *AWS) instance(ctx context.Context) (l lease[Key], err error) {
	if strings.EqualFold(a.getenv("AWS_EC2_METADATA_DISABLED"), "true") {
		return l, nil
	}
	const source = "the role of this instance"
	at := strings.TrimSuffix(a.getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT"), "/")
	if at == "" {
		at = "http://169.254.169.254"
	}
	short, cancel := context.WithTimeout(ctx, brief)
	defer cancel()
	code, _, token, err := (&client{via: nearby, once: true}).ask(short, http.MethodPut, at+"/latest/api/token", map[string]string{"X-Aws-Ec2-Metadata-Token-Ttl-Seconds": "300"}, source)
	if err != nil || code != http.StatusOK {
		return l, nil // this is no instance, or it has no such service
	}
	c, header := &client{via: nearby}, map[string]string{"X-Aws-Ec2-Metadata-Token": string(token)}
	roles := at + "/latest/meta-data/iam/security-credentials/"
	code, _, name, err := c.ask(ctx, http.MethodGet, roles, header, source)
	if err != nil || code == http.StatusNotFound {
		return l, err // the instance has no role
	}
	role, _, _ := strings.Cut(strings.TrimSpace(string(name)), "\n")
	var text []byte
	if code == http.StatusOK {
		code, _, text, err = c.ask(ctx, http.MethodGet, roles+url.PathEscape(role), header, source)
	}
	if err != nil {
		return l, err
	}
	if code != http.StatusOK {
		return l, refused("check the role of the instance", "the metadata service of this instance gives no key (code %d)", code)
	}
	return keyOf(text, source)
}
