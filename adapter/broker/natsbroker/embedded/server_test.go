package embedded_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"caskeleton.dev/adapter/broker/natsbroker/embedded"
)

// childDir makes the test binary a server on that directory, to be killed.
const childDir = "EMBEDDED_TEST_CHILD_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		child(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

// child stores a message, says so, and waits to be killed.
func child(dir string) {
	s, err := embedded.Start(context.Background(), embedded.Options{DataDir: dir})
	if err != nil {
		panic(err)
	}
	nc, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		panic(err)
	}
	js, _ := jetstream.New(nc)
	if _, err := js.CreateStream(context.Background(), jetstream.StreamConfig{Name: "kept", Subjects: []string{"kept"}}); err != nil {
		panic(err)
	}
	if _, err := js.Publish(context.Background(), "kept", []byte("acknowledged")); err != nil {
		panic(err)
	}
	_, _ = os.Stdout.WriteString("stored\n")
	_, _ = io.Copy(io.Discard, os.Stdin) // until the parent ends
}

func start(t *testing.T, o embedded.Options) *embedded.Server {
	t.Helper()
	s, err := embedded.Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(s.Shutdown)
	return s
}

func connect(t *testing.T, s *embedded.Server) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect("", nats.InProcessServer(s))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	return js
}

func kept(t *testing.T, s *embedded.Server) string {
	t.Helper()
	str, err := connect(t, s).Stream(t.Context(), "kept")
	require.NoError(t, err)
	msg, err := str.GetMsg(t.Context(), 1)
	require.NoError(t, err)
	return string(msg.Data)
}

func TestDataSurvivesARestart(t *testing.T) {
	dir := t.TempDir()
	s := start(t, embedded.Options{DataDir: dir})
	js := connect(t, s)
	_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "kept", Subjects: []string{"kept"}})
	require.NoError(t, err)
	_, err = js.Publish(t.Context(), "kept", []byte("acknowledged"))
	require.NoError(t, err)
	s.Shutdown()

	require.Equal(t, "acknowledged", kept(t, start(t, embedded.Options{DataDir: dir})))
}

func TestOneServerADirectoryAndDataSurvivesAKill(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	cmd.Stderr = os.Stderr
	_, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "stored\n", line)

	_, err = embedded.Start(t.Context(), embedded.Options{DataDir: dir})
	require.ErrorIs(t, err, embedded.ErrInUse)
	require.ErrorContains(t, err, dir)

	require.NoError(t, cmd.Process.Signal(syscall.SIGKILL))
	_ = cmd.Wait()
	require.Equal(t, "acknowledged", kept(t, start(t, embedded.Options{DataDir: dir})))
}

func TestItSyncsAndListensOnlyWhereAsked(t *testing.T) {
	quiet := start(t, embedded.Options{DataDir: t.TempDir()})
	require.Empty(t, quiet.URL())
	require.Empty(t, quiet.MonitorURL())
	require.True(t, quiet.SyncAlways())

	s := start(t, embedded.Options{DataDir: t.TempDir(), Addr: "127.0.0.1:0", MonitorAddr: "127.0.0.1:0"})
	require.Regexp(t, `^nats://127\.0\.0\.1:[1-9]`, s.URL())
	nc, err := nats.Connect(s.URL())
	require.NoError(t, err)
	nc.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.MonitorURL()+"/jsz?config=true", nil)
	require.NoError(t, err)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Contains(t, strings.Join(strings.Fields(string(body)), ""), `"sync_always":true`)
}

func TestBadOptions(t *testing.T) {
	for want, o := range map[string]embedded.Options{
		"DataDir is required":                            {},
		`Addr "0.0.0.0:4222" is not a loopback address`:  {DataDir: t.TempDir(), Addr: "0.0.0.0:4222"},
		`Addr "localhost" is no address`:                 {DataDir: t.TempDir(), Addr: "localhost"},
		`MonitorAddr "10.0.0.1:1" is not a loopback add`: {DataDir: t.TempDir(), MonitorAddr: "10.0.0.1:1"},
	} {
		_, err := embedded.Start(t.Context(), o)
		require.ErrorContains(t, err, want)
	}
}

func TestATakenPortFailsTheStartAndFreesTheDirectory(t *testing.T) {
	first := start(t, embedded.Options{DataDir: t.TempDir(), Addr: "127.0.0.1:0"})
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err := embedded.Start(ctx, embedded.Options{DataDir: dir, Addr: strings.TrimPrefix(first.URL(), "nats://")})
	require.ErrorContains(t, err, "address already in use")
	start(t, embedded.Options{DataDir: dir})
}
