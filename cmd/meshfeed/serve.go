package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// headerTimeout bounds how long a client may take to send its request header.
const headerTimeout = 10 * time.Second

func newServe() *cobra.Command {
	var port int
	var open bool
	cmd := &cobra.Command{
		Use:   "serve [DOC.json]",
		Short: "serve the browser page on this machine" + withoutPage(),
		Long: `Serves the page to browsers on this machine only, and prints its address; Ctrl-C ends it.
If DOC.json is given, the page opens with that layout or strategy. The file is read again whenever the
page is loaded; - is standard input, which is read once.`,
		Example: "  meshfeed serve --open layout.json",
		Args:    need(0, 1, "at most one document"),
		RunE: func(cmd *cobra.Command, args []string) error {
			html, err := pageOf(cmd, args)
			if err != nil {
				return err
			}
			listener, err := listen(port)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(cmd.OutOrStdout(), "http://%s/\n", listener.Addr()); err != nil {
				listener.Close()
				return err
			}
			if open {
				openBrowser(cmd, "http://"+listener.Addr().String()+"/")
			}
			return serve(cmd.Context(), listener, func() ([]byte, error) {
				if len(args) == 0 || args[0] == "-" {
					return html, nil
				}
				return pageOf(cmd, args)
			})
		},
	}
	cmd.ValidArgsFunction = layoutFiles
	cmd.Flags().IntVar(&port, "port", 0, "the port; default: a free one")
	cmd.Flags().BoolVar(&open, "open", false, "open the page in the default browser")
	return cmd
}

// openBrowser asks the desktop to open an address. A failure, for example over
// SSH, is only reported, because the printed address still works.
func openBrowser(cmd *cobra.Command, address string) {
	opener := map[string][]string{"darwin": {"open"}, "windows": {"rundll32", "url.dll,FileProtocolHandler"}}[runtime.GOOS]
	if opener == nil {
		opener = []string{"xdg-open"}
	}
	browser := exec.CommandContext(cmd.Context(), opener[0], append(opener[1:], address)...)
	if err := browser.Start(); err != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "meshfeed: no browser was opened: %v\n", err)
		return
	}
	guard.Go("browser", browser.Wait, func(error) {}) // the desktop reports its own errors
}

func listen(port int) (net.Listener, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", fmt.Sprint(port)))
	if err != nil {
		return nil, status.Errorf(status.IO, "serve", "%w", err).WithHint("omit --port to use a free port")
	}
	return listener, nil
}

// serve answers requests until the context ends, which is not an error.
func serve(ctx context.Context, listener net.Listener, page func() ([]byte, error)) error {
	server := &http.Server{Handler: handler(page), ReadHeaderTimeout: headerTimeout}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return status.Errorf(status.IO, "serve", "%w", err)
	}
	return nil
}

// handler answers with the page, which it builds for every request.
func handler(page func() ([]byte, error)) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		html, err := page()
		if err != nil {
			http.Error(w, "meshfeed: "+describe(err), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(html))
	})
	return local(mux)
}

// local rejects requests with another Host than this machine. Otherwise a web site could
// point its own name to 127.0.0.1, and its script could read the page (DNS rebinding).
func local(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := strings.Cut(r.Host, ":")
		if host != "127.0.0.1" && host != "localhost" {
			http.Error(w, "this page is for browsers on this machine: http://127.0.0.1", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
