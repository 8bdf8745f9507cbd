package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/httpapi"
	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/adapter/postgres/pgidempotency"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

// The places at which the child stops, to be killed there.
const (
	beforeClaim = "before the claim"
	claimed     = "claimed"
	executing   = "executing"
	effectMade  = "effect made"
	completed   = "completed, not yet written"
)

// child is this test's own binary, run as a service whose only handler has an effect outside of the database: a line in a file.
type child struct {
	cmd     *exec.Cmd
	url     string
	stopped chan struct{} // closed when it has got to its place
	exited  chan struct{}
}

// childVariable holds the place at which a process is a child that stops; "-" for one that stops nowhere.
const childVariable = "HTTPAPI_TEST_CHILD"

// stopper is a driver that stops its process at a place.
type stopper struct {
	idempotency.Driver
	at   string
	stop func()
}

func (s stopper) reach(place string) {
	if s.at == place {
		s.stop()
	}
}

func (s stopper) Claim(ctx context.Context, r idempotency.Request) (idempotency.Record, bool, error) {
	s.reach(beforeClaim)
	return s.Driver.Claim(ctx, r)
}

func (s stopper) Execute(ctx context.Context, c idempotency.Claim, lease time.Duration, others []idempotency.Scope) (idempotency.Claim, error) {
	s.reach(claimed)
	c, err := s.Driver.Execute(ctx, c, lease, others)
	s.reach(executing)
	return c, err
}

func (s stopper) Settle(ctx context.Context, c idempotency.Claim, from, to idempotency.State, a idempotency.Answer) error {
	err := s.Driver.Settle(ctx, c, from, to, a)
	s.reach(completed)
	return err
}

// runChild serves until the process is killed.
func runChild(ctx context.Context, at string, out io.Writer) error {
	stop := func() {
		_, _ = fmt.Fprintln(out, "stopped")
		select {}
	}
	db, err := postgres.Open(ctx, postgres.Config{DSN: os.Getenv("DATABASE_URL")}, nil)
	if err != nil {
		return err
	}
	runner, err := tx.NewRunner(db, nil)
	if err != nil {
		return err
	}
	keys, err := idempotency.NewKeyring("1", bytes.Repeat([]byte("k"), 32))
	if err != nil {
		return err
	}
	driver := stopper{pgidempotency.New(db), at, stop}
	guard, err := idempotency.New(driver, runner, keys, &idempotency.Options{Lease: time.Hour})
	if err != nil {
		return err
	}
	handler := func(w http.ResponseWriter, r *http.Request) {
		f, err := os.OpenFile(os.Getenv("HTTPAPI_TEST_EFFECTS"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		_, err = fmt.Fprintln(f, r.Header.Get("Idempotency-Key"))
		if err := errors.Join(err, f.Close()); err != nil {
			panic(err)
		}
		driver.reach(effectMade)
		says(http.StatusCreated, "charged")(w, r)
	}
	mux := http.NewServeMux()
	mux.Handle("POST /things/{id}", httpapi.External(guard, httpapi.Policy{})(http.HandlerFunc(handler)))
	mux.Handle("POST /orders/{id}", driver.answering(httpapi.Transactional(guard, httpapi.Policy{}, driver.order)))
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "listening http://%s\n", l.Addr())
	return httpapi.NewServer("", httpapi.Wrap(mux, nil), nil).Serve(l)
}

func startChild(t *testing.T, at, dsn, effects string) *child {
	t.Helper()
	c := &child{cmd: exec.Command(os.Args[0]), stopped: make(chan struct{}), exited: make(chan struct{})} //nolint:noctx // killed below
	c.cmd.Env = append(os.Environ(), childVariable+"="+at, "DATABASE_URL="+dsn, "HTTPAPI_TEST_EFFECTS="+effects)
	var log bytes.Buffer
	c.cmd.Stderr = &log
	stdout, err := c.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.cmd.Start())
	urls := make(chan string, 1)
	go func() {
		defer close(c.exited)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			if url, ok := strings.CutPrefix(lines.Text(), "listening "); ok {
				urls <- url
			} else {
				close(c.stopped)
			}
		}
		_ = c.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		<-c.exited
	})
	select {
	case c.url = <-urls:
	case <-c.exited:
		require.FailNow(t, "the child did not start", "%s", &log)
	}
	return c
}

// kill ends the child as a crash does, once it is where it stops.
func (c *child) kill(t *testing.T) {
	t.Helper()
	select {
	case <-c.stopped:
	case <-c.exited:
	}
	require.NoError(t, c.cmd.Process.Signal(syscall.SIGKILL))
	<-c.exited
	status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	require.True(t, ok)
	require.Equal(t, syscall.SIGKILL, status.Signal())
}

func TestKilledAnywhereAnExternalOperationIsNeverRunTwice(t *testing.T) {
	dsn := migrationstest.DSN(t, migrations.Idempotency())
	f := openFixture(t, postgres.Config{DSN: dsn}, nil)
	file := filepath.Join(t.TempDir(), "effects")
	next := startChild(t, "-", dsn, file) // who lives on
	for _, c := range []struct {
		at      string
		left    []string // the states of its record
		effects int
		expired string // the code of a repeat's answer once the lease has expired; "" where it is answered before
		settle  idempotency.Settlement
		replay  bool // whether the answer comes from the store in the end
	}{
		{at: beforeClaim, left: []string{}, effects: 0},
		{at: claimed, left: []string{"CLAIMED"}, effects: 0},
		{at: executing, left: []string{"EXECUTING"}, effects: 0, expired: "IDEMPOTENCY_ABANDONED", settle: idempotency.NoEffect()},
		{
			at: effectMade, left: []string{"EXECUTING"}, effects: 1, expired: "IDEMPOTENCY_ABANDONED", replay: true,
			settle: idempotency.CompletedWith(httpapi.Response{Status: http.StatusCreated, Body: []byte("charged")}),
		},
		{at: completed, left: []string{"COMPLETED"}, effects: 1, replay: true},
	} {
		t.Run(c.at, func(t *testing.T) {
			key := strings.ReplaceAll(c.at, " ", "-")
			key = strings.ReplaceAll(key, ",", "")
			effects := func() int {
				lines, err := os.ReadFile(file)
				require.True(t, err == nil || os.IsNotExist(err))
				return strings.Count(string(lines), key+"\n")
			}
			send := func(c *child) (answer, error) {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.url+"/things/1", strings.NewReader(`{}`))
				require.NoError(t, err)
				req.Header.Set("Idempotency-Key", key)
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					return answer{}, err
				}
				defer func() { _ = res.Body.Close() }()
				body, err := io.ReadAll(res.Body)
				return answer{res, string(body)}, err
			}
			repeat := func() answer {
				res, err := send(next)
				require.NoError(t, err)
				return res
			}

			dying := startChild(t, c.at, dsn, file)
			cut := make(chan error)
			go func() {
				_, err := send(dying)
				cut <- err
			}()
			dying.kill(t)
			require.Error(t, <-cut, "an answer was written")
			require.Equal(t, c.left, f.states(t))
			require.Equal(t, c.effects, effects())

			if len(c.left) > 0 && c.left[0] != "COMPLETED" {
				require.Equal(t, "IDEMPOTENCY_IN_PROGRESS", repeat().problem(t).Code, "nobody knows yet that it is dead")
				_, err := f.db.Exec(t.Context(), `update caskeleton.idempotency_record set lease_expires_at = clock_timestamp()`)
				require.NoError(t, err)
			}
			if c.expired != "" {
				require.Equal(t, c.expired, repeat().problem(t).Code)
				require.Equal(t, c.expired, repeat().problem(t).Code, "and so it stays")
				require.Equal(t, c.effects, effects(), "it was run again")
				e, err := f.guard.Show(t.Context(), idempotency.Key{Method: "POST", Route: "/things/{id}", Client: key})
				require.NoError(t, err)
				require.NoError(t, f.guard.Reconcile(t.Context(), e.Claim, c.settle))
			}
			res := repeat()
			require.Equal(t, http.StatusCreated, res.StatusCode)
			require.Equal(t, "charged", res.body)
			require.Equal(t, c.replay, res.Header.Get("Idempotent-Replayed") == "true")
			require.Equal(t, "true", repeat().Header.Get("Idempotent-Replayed"))
			require.Equal(t, 1, effects())
			_, err := f.db.Exec(t.Context(), `delete from caskeleton.idempotency_record`)
			require.NoError(t, err)
		})
	}
}
