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

// headerTime bounds how long a client may take to say what it wants.
const headerTime = 10 * time.Second

func newServe() *cobra.Command {
	var port int
	var open bool
	cmd := &cobra.Command{
		Use:   "serve [LAYOUT.json]",
		Short: "show the browser page at an address of this machine",
		Long: `Serves the layout page to browsers of this machine alone, and prints its address; Ctrl-C ends it.
The page begins with the layout of LAYOUT.json, if one is given. The file is read anew whenever
the page is loaded; - is standard input, which is read once.`,
		Example: "  meshfeed serve --open layout.json",
		Args:    need(0, 1, "at most one layout document"),
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
	cmd.Flags().IntVar(&port, "port", 0, "the port; by default one that is free")
	cmd.Flags().BoolVar(&open, "open", false, "open the page in the browser of this desktop")
	return cmd
}

// openBrowser asks the desktop to show an address. If there is none, as over
// SSH, the printed address is still good.
func openBrowser(cmd *cobra.Command, address string) {
	line := map[string][]string{"darwin": {"open"}, "windows": {"rundll32", "url.dll,FileProtocolHandler"}}[runtime.GOOS]
	if line == nil {
		line = []string{"xdg-open"}
	}
	browser := exec.CommandContext(cmd.Context(), line[0], append(line[1:], address)...)
	if err := browser.Start(); err != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "meshfeed: no browser was opened: %v\n", err)
		return
	}
	guard.Go("browser", browser.Wait, func(error) {}) // whether a page is shown is for the desktop to say
}

func listen(port int) (net.Listener, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", fmt.Sprint(port)))
	if err != nil {
		return nil, status.Errorf(status.IO, "serve", "%w", err).WithHint("leave --port out for a port that is free")
	}
	return listener, nil
}

// serve answers until the context ends, which is no error.
func serve(ctx context.Context, listener net.Listener, page func() ([]byte, error)) error {
	server := &http.Server{Handler: handler(page), ReadHeaderTimeout: headerTime}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return status.Errorf(status.IO, "serve", "%w", err)
	}
	return nil
}

// handler answers with the page, which is made for every request.
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

// local refuses requests that were sent to another name than this machine's:
// a site could point its own name here, and its script would then read the page.
func local(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := strings.Cut(r.Host, ":")
		if host != "127.0.0.1" && host != "localhost" {
			http.Error(w, "this page is for browsers of this machine: http://127.0.0.1", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
