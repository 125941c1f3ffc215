package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/plan/strategy"
	"github.com/meshfeed/meshfeed/core/plan/strategy/document"
)

// TestAdvise checks that advise prints what package document writes about the same
// question, with the flags applied and with the defaults of a model.
func TestAdvise(t *testing.T) {
	t.Chdir(t.TempDir())
	const question = `{"meshfeed":1,"model":{"preset":"llama3-8b"},"training":{"tokens":8192},"cluster":{"devices":2,"device":"a100-40"}}`
	for _, c := range []struct{ args, same string }{
		{"advise -", question},
		{"advise - --device h100-80 --devices 8 --per-node 4 --batch 64 --sequence 2048 --keep 3",
			`{"meshfeed":1,"model":{"preset":"llama3-8b","transformer":{"sequence":2048}},"training":{"batch":64},"cluster":{"devices":8,"device":"h100-80","per_node":4},"search":{"keep":3}}`},
		{"advise llama3-8b --devices 8 --device h100-80", `{"meshfeed":1,"model":{"preset":"llama3-8b"},"training":{"batch":128},"cluster":{"devices":8,"device":"h100-80"}}`},
		{"advise llama3-8b --devices 512 --device h100-80", `{"meshfeed":1,"model":{"preset":"llama3-8b"},"training":{"batch":512},"cluster":{"devices":512,"device":"h100-80"}}`},
		{"advise llama3-8b --devices 24 --device h100-80", `{"meshfeed":1,"model":{"preset":"llama3-8b"},"training":{"batch":96},"cluster":{"devices":24,"device":"h100-80"}}`},
		{"advise gpt2 --devices 8 --device l4-24 --sequence 1000",
			`{"meshfeed":1,"model":{"preset":"gpt2","transformer":{"sequence":1000}},"training":{"batch":1024},"cluster":{"devices":8,"device":"l4-24"}}`},
		{"advise gpt2 --devices 8 --device l4-24 --sequence 512",
			`{"meshfeed":1,"model":{"preset":"gpt2","transformer":{"sequence":512}},"training":{"batch":2048},"cluster":{"devices":8,"device":"l4-24"}}`},
	} {
		d, err := document.Parse([]byte(c.same))
		if err != nil {
			t.Fatal(err)
		}
		r, err := strategy.Advise(d)
		if err != nil {
			t.Fatal(err)
		}
		status := exitSuccess
		if r.Best < 0 {
			status = exitProblem
		}
		for args, want := range map[string]string{
			c.args: document.Text(d, r), c.args + " --json": string(document.Report(r)) + "\n",
		} {
			var out, diagnostics bytes.Buffer
			if code := run(context.Background(), strings.Fields(args), strings.NewReader(question), &out, &diagnostics); code != status || out.String() != want {
				t.Errorf("%s: exit status %d, want %d\n%s%s\nwant\n%s", args, code, status, out.String(), diagnostics.String(), want)
			}
		}
	}
}

// TestAdviseRefusesFiles checks that errors about files speak of strategy documents.
func TestAdviseRefusesFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("large.json", make([]byte, document.MaxBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("folder", 0o700); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"large.json": "large.json has 8,388,609 bytes, but a strategy document may have 8,388,608\n" +
			"  describe a model of that many arrays by its sizes, or by its number of parameters",
		"folder": "folder is a directory\n  give the path of a strategy document, or - for standard input",
	} {
		var out, diagnostics bytes.Buffer
		if code := run(context.Background(), []string{"advise", name}, strings.NewReader(""), &out, &diagnostics); code != exitFailure || diagnostics.String() != "meshfeed: "+want+"\n" {
			t.Errorf("%s: exit status %d\n%s\nwant\n%s", name, code, diagnostics.String(), want)
		}
	}
}

// TestAdviseFlagValues checks the errors of values that are not of the type of their flag.
func TestAdviseFlagValues(t *testing.T) {
	for _, c := range []struct{ flag, value, expected string }{
		{"devices", "8x8", "expected an integer"},
		{"devices", "99999999999999999999", "the number is out of range"},
		{"json", "maybe", "expected true or false"},
	} {
		var out, diagnostics bytes.Buffer
		args := []string{"advise", "gpt2", "--" + c.flag + "=" + c.value}
		code := run(context.Background(), args, strings.NewReader(""), &out, &diagnostics)
		want := fmt.Sprintf("meshfeed: advise: invalid argument %q for \"--%s\" flag: %s\n  usage: meshfeed advise MODEL|DOC.json [flags]\n", c.value, c.flag, c.expected)
		if code != exitFailure || diagnostics.String() != want {
			t.Errorf("%s: exit status %d\n%swant %d\n%s", args, code, diagnostics.String(), exitFailure, want)
		}
	}
}

// TestDrawListOfIntegers checks the error of a shape that is not written with commas.
func TestDrawListOfIntegers(t *testing.T) {
	var out, diagnostics bytes.Buffer
	code := run(context.Background(), []string{"draw", "matmul", "--x", "128x4096"}, strings.NewReader(""), &out, &diagnostics)
	const want = "meshfeed: matmul: invalid argument \"128x4096\" for \"--x\" flag: expected integers with commas, such as 128,4096\n  usage: meshfeed draw matmul [flags]\n"
	if code != exitFailure || diagnostics.String() != want {
		t.Errorf("exit status %d\n%swant\n%s", code, diagnostics.String(), want)
	}
}

func TestWholeDevice(t *testing.T) {
	for name, want := range map[string]string{"h200": "h200-141", "h200-141": "h200-141", "h100": "h100", "nosuch": "nosuch", "": ""} {
		if got := wholeDevice(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}
