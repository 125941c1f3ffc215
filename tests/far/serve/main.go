// Command serve serves the files of a folder as a web server far away, on the loopback interface. It prints its
// address, and ends with its standard input. GET /counts returns the counts since the last time.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/meshfeed/meshfeed/tests/far"
)

func main() {
	s := &far.Server{Files: map[string][]byte{}, Faults: []far.Fault{far.Busy, far.Cut}}
	flag.DurationVar(&s.Latency, "latency", 30*time.Millisecond, "before each answer")
	flag.Int64Var(&s.Rate, "rate", 50e6, "the most bytes a second of a connection")
	flag.Float64Var(&s.Share, "share", 0, "of the requests that are refused, or cut in the middle")
	flag.Parse()
	paths, err := filepath.Glob(filepath.Join(flag.Arg(0), "*"))
	if err != nil {
		log.Fatal(err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			log.Fatal(err)
		}
		s.Put("/"+filepath.Base(path), data)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		log.Fatal(http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/counts" {
				s.ServeHTTP(w, r)
				return
			}
			s.Seen() // forgets the requests
			_ = json.NewEncoder(w).Encode(s.Take())
		})))
	}()
	fmt.Printf("http://%s\n", listener.Addr())
	_, _ = io.Copy(io.Discard, os.Stdin)
}
