package credentials

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Sign signs a request with a body for a service ("s3", "sts") in a region by AWS Signature Version 4, as of a time. The
// signature covers the path as the URL escapes it, the query, the host, the headers Content-Type and X-Amz-*, and the
// body. The zero key signs nothing.
func Sign(r *http.Request, key Key, region, service, body string, at time.Time) {
	if key == (Key{}) {
		return
	}
	hash, stamp := hex.EncodeToString(digest(body)), at.UTC().Format("20060102T150405Z")
	r.Header.Set("X-Amz-Date", stamp)
	r.Header.Set("X-Amz-Content-Sha256", hash)
	if key.Token != "" {
		r.Header.Set("X-Amz-Security-Token", key.Token)
	}
	signed := map[string]string{"host": r.Host}
	for name, values := range r.Header {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "x-amz-") || lower == "content-type" {
			signed[lower] = strings.Join(values, ",")
		}
	}
	order, lines := slices.Sorted(maps.Keys(signed)), ""
	for _, name := range order {
		lines += name + ":" + signed[name] + "\n"
	}
	names, path := strings.Join(order, ";"), r.URL.EscapedPath()
	if path == "" {
		path = "/"
	}
	canonical := strings.Join([]string{r.Method, path, query(r.URL), lines, names, hash}, "\n")
	scope := stamp[:8] + "/" + region + "/" + service + "/aws4_request"
	text := "AWS4-HMAC-SHA256\n" + stamp + "\n" + scope + "\n" + hex.EncodeToString(digest(canonical))
	secret := []byte("AWS4" + key.Secret)
	for _, part := range strings.Split(scope, "/") {
		secret = mac(secret, part)
	}
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+key.ID+"/"+scope+", SignedHeaders="+names+", Signature="+hex.EncodeToString(mac(secret, text)))
}

// query returns the query of an address in the order and with the escapes of signatures.
func query(at *url.URL) string {
	return strings.ReplaceAll(at.Query().Encode(), "+", "%20")
}

func digest(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}
