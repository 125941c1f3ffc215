package files

import (
	"regexp"
	"strings"
)

// scheme matches the beginning of a URL, in the syntax of RFC 3986.
var scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)

// Scheme returns the scheme of a URL in lower case, such as "https", or "" for any other name.
func Scheme(name string) string {
	return strings.ToLower(strings.TrimSuffix(scheme.FindString(name), "://"))
}

// Public returns a name without what may be secret. In URLs these are the user and the password before
// the host. In URLs of web servers it is also everything from the first ? on, such as a signature. Errors,
// listings and files of the cache have public names only.
func Public(name string) string {
	switch Scheme(name) {
	case "":
		return name
	case "http", "https":
		name, _, _ = strings.Cut(name, "#")
		name, _, _ = strings.Cut(name, "?")
	}
	begin, rest, _ := strings.Cut(name, "://")
	host, path, below := strings.Cut(rest, "/")
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		host = host[at+1:]
	}
	name = strings.ToLower(begin) + "://" + host
	if below {
		name += "/" + path
	}
	return name
}

// Numbered returns the names that a name with ranges of numbers, such as {000..127}, stands for. The
// error is InvalidArgument for a range without numbers, or with too many.
func Numbered(name string) (all []string, err error) {
	at := numbers.FindStringSubmatchIndex(name)
	if at == nil {
		return []string{name}, nil
	}
	list, err := expand(name, at)
	for _, one := range list {
		more, err := Numbered(one)
		if err != nil {
			return nil, err
		}
		if all = append(all, more...); len(all) > maxFiles {
			return nil, tooMany()
		}
	}
	return all, err
}
