package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// startTimeout bounds a start on a busy machine; nothing is asserted about how long one takes.
const startTimeout = time.Minute

// binary builds the service once for all tests.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "orders-e2e-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "orders")
	args := []string{"build", "-tags", "failpoints", "-o", path} // a normal build has none of them
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		args = append(args, "-race") // as this test has it: it needs a C compiler
	}
	out, err := exec.Command("go", append(args, "../cmd/orders")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building the service: %w\n%s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := binary(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// process is one run of the service.
type process struct {
	cmd    *exec.Cmd
	url    string // once it is ready
	ready  chan string
	stderr *output
	exited chan struct{}
}

// output is what a process has written so far.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// launch runs "orders up". The test ends it if nobody else does.
func launch(t *testing.T, env ...string) *process {
	t.Helper()
	path, err := binary()
	require.NoError(t, err)
	p := &process{cmd: exec.Command(path, "up"), ready: make(chan string, 1), stderr: &output{}, exited: make(chan struct{})} //nolint:noctx // killed in Cleanup
	p.cmd.Env = append(clean(os.Environ()), append([]string{"APP_HTTP_ADDR=127.0.0.1:0"}, env...)...)
	p.cmd.Stderr = p.stderr
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	go func() {
		defer close(p.exited)
		lines := bufio.NewReader(stdout)
		for {
			line, err := lines.ReadString('\n')
			if url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on "); ok {
				p.ready <- url
			}
			if err != nil {
				break
			}
		}
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() { p.kill() })
	return p
}

// start is launch that returns once the service is ready.
func start(t *testing.T, env ...string) *process {
	t.Helper()
	p := launch(t, env...)
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	select {
	case p.url = <-p.ready:
	case <-p.exited:
		require.FailNow(t, "the service did not start", "%s", p.stderr)
	case <-ctx.Done():
		p.kill()
		require.FailNow(t, "the service was not ready in time", "%s", p.stderr)
	}
	return p
}

// clean drops the variables that a test sets itself, wherever it was run from.
func clean(environ []string) []string {
	var kept []string
	for _, v := range environ {
		if !slices.ContainsFunc([]string{"APP_", "ORDERS_", "DATABASE_URL=", "NATS_URL=", "REDIS_URL="}, func(p string) bool { return strings.HasPrefix(v, p) }) {
			kept = append(kept, v)
		}
	}
	return kept
}

// kill ends the process as a crash does, and returns once it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// terminate asks the process to stop and returns its exit code.
func (p *process) terminate(t *testing.T) int {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case <-p.exited:
	case <-time.After(startTimeout):
		p.kill()
		require.FailNow(t, "the service did not stop", "%s", p.stderr)
	}
	return p.cmd.ProcessState.ExitCode()
}

// answer is what a client keeps of a response.
type answer struct {
	status   int
	body     string
	location string
	etag     string
	replayed bool
}

// place sends POST /orders.
func place(ctx context.Context, url, key, body string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/orders", strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	return do(req)
}

func get(ctx context.Context, url string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return answer{}, err
	}
	return do(req)
}

func do(req *http.Request) (answer, error) {
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	return answer{
		status: res.StatusCode, body: string(body), location: res.Header.Get("Location"), etag: res.Header.Get("ETag"),
		replayed: res.Header.Get("Idempotent-Replayed") == "true",
	}, err
}
