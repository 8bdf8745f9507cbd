package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// runIn runs the real go test over modules of testdata.
func runIn(t *testing.T, dirs ...string) (ok bool, out, errOut string) {
	t.Helper()
	var args []string
	for _, d := range dirs {
		args = append(args, filepath.Join("testdata", d))
	}
	var o, e bytes.Buffer
	ok = run(t.Context(), &o, &e, append(args, "--", "./..."))
	return ok, o.String(), e.String()
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	return lines[len(lines)-1]
}

func TestRunCountsWhatPassed(t *testing.T) {
	ok, out, errOut := runIn(t, "good")
	require.True(t, ok, "%s%s", out, errOut)
	require.Equal(t, "3 passed, 0 failed", lastLine(out))
	require.NotContains(t, out, "quiet where it passes")
}

func TestRunCountsEveryKindOfFailure(t *testing.T) {
	ok, out, _ := runIn(t, "good", "bad")
	require.False(t, ok)
	// a: one each; b: does not build; c: TestMain fails after a test that passed; d: skips
	require.Equal(t, "5 passed, 4 failed", lastLine(out))
	for _, want := range []string{
		"the reason", "undefined: doesNotBuild", "main failed", "TestAway skipped",
		"FAIL bad.example/a (1 passed, 1 failed", "FAIL bad.example/b (0 passed, 1 failed", "FAIL bad.example/c (1 passed, 1 failed", "FAIL bad.example/d (0 passed, 1 failed",
	} {
		require.Contains(t, out, want)
	}
}

func TestRunFailsWhereNoTestRan(t *testing.T) {
	ok, out, errOut := runIn(t, "missing")
	require.False(t, ok)
	require.Equal(t, "0 passed, 0 failed", lastLine(out))
	require.Contains(t, errOut, "missing")
	require.Contains(t, errOut, "no test ran")
}

func TestACachedResultSaysSo(t *testing.T) {
	var o bytes.Buffer
	s := newSummary(&o)
	events := `{"Action":"start","Package":"p"}` + "\n" + `{"Action":"pass","Package":"p","Test":"TestA"}` + "\n"
	require.NoError(t, s.read(strings.NewReader(events+`{"Action":"output","Package":"p","Output":"ok  \tp\t(cached)\n"}`+"\n"+`{"Action":"pass","Package":"p","Elapsed":0}`)))
	require.NoError(t, s.read(strings.NewReader(events+`{"Action":"output","Package":"p","Output":"ok  \tp\t1.5s\n"}`+"\n"+`{"Action":"pass","Package":"p","Elapsed":1.5}`)))
	require.Equal(t, "ok   p (1 passed, cached)\nok   p (1 passed, 1.5s)\n", o.String())
}

func TestRunNeedsDirectories(t *testing.T) {
	var o, e bytes.Buffer
	require.False(t, run(t.Context(), &o, &e, []string{"./..."}))
	require.Contains(t, e.String(), "usage")
}

func TestReadSurvivesACutRun(t *testing.T) {
	var o bytes.Buffer
	s := newSummary(&o)
	require.NoError(t, s.read(strings.NewReader("go: cannot find main module\n"+
		`{"Action":"start","Package":"p"}`+"\n"+`{"Action":"run","Package":"p","Test":"TestA"}`+"\n"+
		`{"Action":"output","Package":"p","Test":"TestA","Output":"panic: test timed out\n"}`+"\n"+`{"Action":"fail","Package":"p"}`)))
	passed, failed := s.counts()
	require.Equal(t, 0, passed)
	require.Equal(t, 1, failed)
	require.Contains(t, o.String(), "go: cannot find main module")
	require.Contains(t, o.String(), "panic: test timed out")
}
