package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// event is a line of `go test -json`; see `go doc test2json` and `go help buildjson`.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of build events
	Test        string
	Elapsed     float64
	Output      string
	FailedBuild string
}

// summary adds up the events of any number of runs.
type summary struct {
	out            io.Writer
	passed, failed int
	packages       map[string]*packageRun
	builds         map[string]*strings.Builder // compiler's output by import path
}

type packageRun struct {
	passed, failed int
	output         map[string]*strings.Builder // by test; "" is the package's own
}

func newSummary(out io.Writer) *summary {
	return &summary{out: out, packages: map[string]*packageRun{}, builds: map[string]*strings.Builder{}}
}

func (s *summary) counts() (passed, failed int) { return s.passed, s.failed }

// read consumes the output of one `go test -json`. Lines that are not events are passed on, since they explain why there are none.
func (s *summary) read(r io.Reader) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				fmt.Fprintf(s.out, "%s", line)
			} else {
				s.add(e)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (s *summary) add(e event) {
	switch e.Action {
	case "build-output":
		buffer(s.builds, e.ImportPath).WriteString(e.Output)
		return
	case "start":
		s.packages[e.Package] = &packageRun{output: map[string]*strings.Builder{}}
	}
	p := s.packages[e.Package]
	if p == nil {
		return
	}
	switch {
	case e.Action == "output":
		buffer(p.output, e.Test).WriteString(e.Output)
	case e.Action != "pass" && e.Action != "fail" && e.Action != "skip":
	case e.Test == "":
		s.end(e, p)
	case e.Action == "pass":
		p.passed++
		delete(p.output, e.Test)
	default:
		p.failed++
		if e.Action == "skip" {
			fmt.Fprintf(s.out, "%s: %s skipped, which counts as failed: a skipped test proves nothing\n", e.Package, e.Test)
		}
		s.show(p, e.Test)
	}
}

// end prints a package's line and adds its counts.
func (s *summary) end(e event, p *packageRun) {
	if e.Action == "fail" {
		if p.failed == 0 {
			p.failed = 1 // it did not build, ran out of time, or failed in TestMain
		}
		if b := s.builds[e.FailedBuild]; b != nil {
			fmt.Fprint(s.out, b)
		}
		for _, test := range slices.Sorted(maps.Keys(p.output)) {
			s.show(p, test)
		}
	}
	s.passed += p.passed
	s.failed += p.failed
	delete(s.packages, e.Package)
	switch {
	case p.failed > 0:
		fmt.Fprintf(s.out, "FAIL %s (%d passed, %d failed, %.1fs)\n", e.Package, p.passed, p.failed, e.Elapsed)
	case p.passed > 0 && strings.HasSuffix(buffer(p.output, "").String(), "\t(cached)\n"):
		fmt.Fprintf(s.out, "ok   %s (%d passed, cached)\n", e.Package, p.passed)
	case p.passed > 0:
		fmt.Fprintf(s.out, "ok   %s (%d passed, %.1fs)\n", e.Package, p.passed, e.Elapsed)
	}
}

func (s *summary) show(p *packageRun, test string) {
	if b := p.output[test]; b != nil {
		fmt.Fprint(s.out, b)
		delete(p.output, test)
	}
}

func buffer(m map[string]*strings.Builder, key string) *strings.Builder {
	if m[key] == nil {
		m[key] = &strings.Builder{}
	}
	return m[key]
}
