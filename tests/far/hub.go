package far

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// Hub is a stand-in for the Hugging Face hub, with one dataset, "org/name". Files are served by a store, to
// which it redirects with a signature.
type Hub struct {
	Store *Server
	Away  string // the address of the store
	Token string // that is needed
	Page  int    // items of a page of a listing

	mu    sync.Mutex
	Files map[string][]byte // of the commit of main
	Seen  []string          // requests, as path and query, with the token
}

// sha is the commit of main.
const sha = "0123456789012345678901234567890123456789"

// ServeHTTP implements http.Handler.
func (h *Hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Seen = append(h.Seen, r.URL.RequestURI()+" "+r.Header.Get("Authorization"))
	if h.Token != "" && r.Header.Get("Authorization") != "Bearer "+h.Token {
		http.Error(w, "unknown token", http.StatusUnauthorized)
		return
	}
	api, isAPI := strings.CutPrefix(r.URL.EscapedPath(), "/api/datasets/org/name/")
	switch revision, isRevision := strings.CutPrefix(api, "revision/"); {
	case isAPI && isRevision && (revision == "main" || revision == "refs%2Fconvert%2Fparquet"):
		fmt.Fprintf(w, `{"sha": %q}`, sha)
	case isAPI && strings.HasPrefix(api, "tree/"+sha):
		dir, _ := url.PathUnescape(strings.Trim(strings.TrimPrefix(api, "tree/"+sha), "/"))
		h.tree(w, r, dir)
	case strings.HasPrefix(r.URL.Path, "/datasets/org/name/resolve/"+sha+"/"):
		path := strings.TrimPrefix(r.URL.Path, "/datasets/org/name/resolve/"+sha)
		if _, found := h.Files[path[1:]]; !found {
			http.NotFound(w, r)
			return
		}
		http.Redirect(w, r, h.Away+path+"?signature=1", http.StatusFound)
	default:
		http.NotFound(w, r)
	}
}

// tree lists a directory, and all below it if the query says so.
func (h *Hub) tree(w http.ResponseWriter, r *http.Request, dir string) {
	type item map[string]any
	items, found := map[string]item{}, dir == ""
	for path, data := range h.Files {
		rest, inside := path, true
		if dir != "" {
			rest, inside = strings.CutPrefix(path, dir+"/")
		}
		found = found || inside
		first, _, deeper := strings.Cut(rest, "/")
		if name := strings.TrimPrefix(dir+"/"+first, "/"); inside && deeper {
			items[name] = item{"type": "directory", "path": name}
		}
		if inside && (!deeper || r.URL.Query().Get("recursive") == "true") {
			items[path] = item{"type": "file", "path": path, "size": len(data), "oid": fmt.Sprintf("%x", sha1.Sum(data))}
			if len(data) > 100 {
				items[path]["lfs"] = item{"oid": fmt.Sprintf("%x", sha256.Sum256(data)), "size": len(data)}
			}
		}
	}
	if !found {
		http.NotFound(w, r)
		return
	}
	var names []string
	for name := range items {
		names = append(names, name)
	}
	slices.Sort(names)
	from := 0
	_, _ = fmt.Sscan(r.URL.Query().Get("cursor"), &from)
	to := len(names)
	if h.Page > 0 && to > from+h.Page {
		to = from + h.Page
		w.Header().Set("Link", fmt.Sprintf(`<http://%s%s?recursive=%s&cursor=%d>; rel="next"`, r.Host, r.URL.EscapedPath(), r.URL.Query().Get("recursive"), to))
	}
	list := []item{}
	for _, name := range names[from:to] {
		list = append(list, items[name])
	}
	_ = json.NewEncoder(w).Encode(list)
}

// Put adds a file to the dataset.
func (h *Hub) Put(path string, data []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Files[path] = data
	h.Store.Put("/"+path, data)
}

// Take returns the requests since the last call.
func (h *Hub) Take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	seen := h.Seen
	h.Seen = nil
	return seen
}
