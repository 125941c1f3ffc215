package credentials

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/meshfeed/meshfeed/arrowio/internal/local"
	"github.com/meshfeed/meshfeed/core/status"
)

// profiles are the settings of the files config and credentials.
type profiles struct {
	*AWS
	sections map[string]section // profiles by name, and others such as "sso-session dev"
	file     map[string]string  // by profile: the file for errors
	chosen   string             // the profile of AWS_PROFILE, or "default"
	named    bool               // AWS_PROFILE is set
}

// profiles reads both files. A file that does not exist is empty.
func (a *AWS) profiles() (*profiles, error) {
	p := &profiles{AWS: a, sections: map[string]section{}, file: map[string]string{}, chosen: a.first("AWS_PROFILE", "AWS_DEFAULT_PROFILE")}
	if p.named = p.chosen != ""; !p.named {
		p.chosen = "default"
	}
	config, err := p.read("AWS_CONFIG_FILE", "config")
	if err != nil {
		return nil, err
	}
	keys, err := p.read("AWS_SHARED_CREDENTIALS_FILE", "credentials")
	if err != nil {
		return nil, err
	}
	if len(p.sections[p.chosen]) == 0 && p.named {
		return nil, invalid("correct AWS_PROFILE, or remove it to use other credentials", "AWS_PROFILE is %q, and neither %s nor %s has that profile", p.chosen, config, keys)
	}
	return p, nil
}

// read adds the sections of the file that a variable names, or else of a file in ~/.aws. It returns the file's name
// for errors.
func (p *profiles) read(variable, base string) (shown string, err error) {
	home := p.first("HOME", "USERPROFILE")
	path := p.getenv(variable)
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		path = local.Opener{}.Join(home, rest)
	}
	if path == "" {
		path = local.Opener{}.Join(home, ".aws/"+base)
	}
	shown = path
	if rest, ok := strings.CutPrefix(path, home+"/"); ok && home != "" {
		shown = "~/" + rest
	}
	text, err := local.Folder{}.Read(path)
	if status.CodeOf(err) == status.NotFound {
		return shown, nil
	}
	if err != nil {
		return shown, err
	}
	sections, wrong := parseINI(string(text))
	if wrong > 0 {
		return shown, invalid("correct it; its text is not shown here, because it may be secret", "%s: line %d is neither [section] nor name = value", shown, wrong)
	}
	for name, s := range sections {
		profile, marked := strings.CutPrefix(name, "profile ")
		if base == "config" && !marked && name != "default" && !strings.HasPrefix(name, "sso-session ") {
			continue
		}
		p.add(profile, s, shown)
	}
	return shown, nil
}

// add merges settings into a profile. A key is replaced as a whole.
func (p *profiles) add(name string, s section, file string) {
	old := p.sections[name]
	if old == nil {
		old = section{}
		p.sections[name] = old
	}
	if s["aws_access_key_id"] != "" {
		delete(old, "aws_session_token")
	}
	for key, value := range s {
		old[key] = value
	}
	p.file[name] = file
}

// label names a profile and its file.
func (p *profiles) label(name string) string { return "profile " + name + " of " + p.file[name] }

// key returns the key of a profile. Its source is "" if the profile has no credentials. Users are the profiles with a
// role that led to this one.
func (p *profiles) key(ctx context.Context, name string, users []string) (l lease[Key], err error) {
	s := p.sections[name]
	if s["role_arn"] != "" && (len(users) == 0 || users[len(users)-1] != name) {
		return p.role(ctx, name, users)
	}
	k := Key{s["aws_access_key_id"], s["aws_secret_access_key"], s["aws_session_token"]}
	switch {
	case (k.ID == "") != (k.Secret == ""):
		return l, invalid("give both", "%s has only one of aws_access_key_id and aws_secret_access_key", p.label(name))
	case k.ID != "":
		return lease[Key]{value: k, source: p.label(name)}, nil
	case s["sso_session"] != "" || s["sso_start_url"] != "":
		return p.sso(ctx, name)
	case s["credential_process"] != "":
		return run(ctx, s["credential_process"], "credential_process of "+p.label(name))
	}
	return l, nil
}

// role returns the key of a profile's role.
func (p *profiles) role(ctx context.Context, name string, users []string) (l lease[Key], err error) {
	s, label := p.sections[name], p.label(name)
	source, from := s["source_profile"], s["credential_source"]
	r := role{arn: s["role_arn"], external: s["external_id"], session: s["role_session_name"], seconds: s["duration_seconds"], region: s["region"]}
	switch {
	case s["mfa_serial"] != "":
		return l, status.Errorf(status.Unsupported, "arrowio", "%s has mfa_serial, and nothing here can ask for a code", label).
			WithHint("get a session with the code first (aws configure export-credentials --format env), or use SSO")
	case s["web_identity_token_file"] != "":
		return p.exchange(ctx, r, s["web_identity_token_file"], label)
	case slices.Contains(users, name):
		return l, invalid("let the last one have a key", "%s: source_profile leads back to this profile", label)
	case source != "" && p.sections[source] == nil:
		return l, invalid("correct it", "%s: source_profile is %q, and there is no such profile", label, source)
	case source != "":
		l, err = p.key(ctx, source, append(users, name))
	case from == "Environment":
		l, err = p.environment()
	case from == "Ec2InstanceMetadata":
		l, err = p.instance(ctx)
	case from == "EcsContainer":
		l, err = p.container(ctx)
	default:
		return l, invalid("give source_profile, or credential_source with Environment, Ec2InstanceMetadata or EcsContainer",
			"%s has role_arn, and nothing says which credentials may take that role", label)
	}
	if err != nil {
		return l, err
	}
	if l.source == "" {
		return l, invalid("correct it", "%s: %s has no credentials to take role %s", label, source+from, r.arn)
	}
	return p.assume(ctx, r, l)
}

// run returns the key that a program prints.
func run(ctx context.Context, command, source string) (lease[Key], error) {
	program := exec.CommandContext(ctx, "sh", "-c", command)
	program.WaitDelay = time.Second
	text, err := program.Output()
	if err != nil {
		return lease[Key]{}, refused("run it in a terminal to see its messages", "%s failed (%s)", source, program.ProcessState)
	}
	return keyOf(text, source)
}
