package idempotency_test

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

var (
	secret  = bytes.Repeat([]byte("k"), 32)
	key     = idempotency.Key{Method: "POST", Route: "/orders", Client: "abc"}
	fp      = idempotency.NewFingerprint("POST", "/orders", "", "application/json", []byte(`{}`))
	errBoom = errors.New("boom")
)

func newGuard(t *testing.T, s *store, o *idempotency.Options) (*idempotency.Guard, *tx.Runner) {
	t.Helper()
	runner, err := tx.NewRunner(s, nil)
	require.NoError(t, err)
	keys, err := idempotency.NewKeyring("1", secret)
	require.NoError(t, err)
	g, err := idempotency.New(s, runner, keys, o)
	require.NoError(t, err)
	return g, runner
}

// answer is an operation that returns v and counts its runs.
func answer(runs *int, v string) func(context.Context, *tx.Tx) (string, error) {
	return func(context.Context, *tx.Tx) (string, error) {
		*runs++
		return v, nil
	}
}

func TestARepeatGetsTheFirstAnswerWithoutRunning(t *testing.T) {
	s, runs := newStore(), 0
	g, _ := newGuard(t, s, nil)
	first, err := idempotency.Do(t.Context(), g, key, fp, answer(&runs, "order 1"))
	require.NoError(t, err)
	require.Equal(t, idempotency.Outcome[string]{Value: "order 1"}, first)
	require.Equal(t, []string{"claim", "begin", "start", "complete", "commit"}, s.calls)

	again, err := idempotency.Do(t.Context(), g, key, fp, answer(&runs, "order 2"))
	require.NoError(t, err)
	require.Equal(t, idempotency.Outcome[string]{Value: "order 1", Replayed: true}, again)
	require.Equal(t, 1, runs)
	require.Equal(t, []string{"claim", "begin", "start", "complete", "commit", "claim"}, s.calls)
}

func TestAnotherRequestUnderTheSameKeyIsRefused(t *testing.T) {
	s, runs := newStore(), 0
	g, _ := newGuard(t, s, nil)
	_, err := idempotency.Do(t.Context(), g, key, fp, answer(&runs, "order 1"))
	require.NoError(t, err)
	other := idempotency.NewFingerprint("POST", "/orders", "", "application/json", []byte(`{"a":1}`))
	_, err = idempotency.Do(t.Context(), g, key, other, answer(&runs, "order 2"))
	require.ErrorIs(t, err, fault.IdempotencyKeyReused)
	require.Equal(t, 1, runs)
}

func TestTheScopeIsTheWholeKey(t *testing.T) {
	s, runs := newStore(), 0
	g, _ := newGuard(t, s, nil)
	keys := []idempotency.Key{
		key,
		{Tenant: "t", Method: "POST", Route: "/orders", Client: "abc"},
		{Principal: "t", Method: "POST", Route: "/orders", Client: "abc"},
		{Method: "PUT", Route: "/orders", Client: "abc"},
		{Method: "POST", Route: "/ordersa", Client: "bc"}, // the same text, cut elsewhere
		{Method: "POST", Route: "/orders", Client: "abcd"},
	}
	for i, k := range keys {
		out, err := idempotency.Do(t.Context(), g, k, fp, answer(&runs, "x"))
		require.NoError(t, err)
		require.False(t, out.Replayed, "key %d", i)
	}
	require.Equal(t, len(keys), runs)
	require.Len(t, s.rows, len(keys))
}

func TestADuplicateOfARunningOneIsTurnedAway(t *testing.T) {
	s, runs := newStore(), 0
	g, _ := newGuard(t, s, nil)
	_, err := idempotency.Do(t.Context(), g, key, fp, func(context.Context, *tx.Tx) (string, error) {
		for _, s.expired = range []bool{false, true} { // the holder is alive, whatever its lease says
			_, err := idempotency.Do(t.Context(), g, key, fp, answer(&runs, "second"))
			require.ErrorIs(t, err, fault.IdempotencyInProgress)
			after, ok := fault.RetryAfter(err)
			require.True(t, ok)
			require.Equal(t, time.Second, after)
		}
		return "first", nil
	})
	require.NoError(t, err)
	require.Zero(t, runs)
}

func TestTheClaimOfACrashedOwnerIsTakenOverOnceItsLeaseExpired(t *testing.T) {
	s, runs := newStore(), 0
	g, _ := newGuard(t, s, nil)
	s.commitErr = fault.DBCommitUnknown // leaves the claim, as a crash does
	_, err := idempotency.Do(t.Context(), g, key, fp, answer(&runs, "lost"))
	require.ErrorIs(t, err, fault.DBCommitUnknown)
	_, hasAfter := fault.RetryAfter(err)
	require.True(t, hasAfter)
	require.NotContains(t, s.calls, "release")

	s.commitErr = nil
	_, err = idempotency.Do(t.Context(), g, key, fp, answer(&runs, "too early"))
	require.ErrorIs(t, err, fault.IdempotencyInProgress)
	require.Equal(t, 1, runs)

	s.expired = true
	out, err := idempotency.Do(t.Context(), g, key, fp, answer(&runs, "second"))
	require.NoError(t, err)
	require.Equal(t, "second", out.Value)
	require.Equal(t, 2, runs)
}

func TestAFailureReleasesTheClaim(t *testing.T) {
	for name, fail := range map[string]func(ctx context.Context, cancel func()) (string, error){
		"error":       func(context.Context, func()) (string, error) { return "", errBoom },
		"panic":       func(context.Context, func()) (string, error) { panic("at the disco") },
		"Goexit":      func(context.Context, func()) (string, error) { runtime.Goexit(); return "", nil },
		"client gone": func(ctx context.Context, cancel func()) (string, error) { cancel(); return "", ctx.Err() },
		"too large":   func(context.Context, func()) (string, error) { return strings.Repeat("x", 16<<20), nil },
	} {
		t.Run(name, func(t *testing.T) {
			s, runs := newStore(), 0
			g, _ := newGuard(t, s, nil)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err := errors.New("it did not return")
			var wg sync.WaitGroup
			wg.Go(func() {
				defer func() { _ = recover() }()
				_, err = idempotency.Do(ctx, g, key, fp, func(ctx context.Context, _ *tx.Tx) (string, error) { return fail(ctx, cancel) })
			})
			wg.Wait()
			require.Error(t, err)
			require.Empty(t, s.rows)
			require.NotContains(t, s.calls, "commit")
			out, err := idempotency.Do(t.Context(), g, key, fp, answer(&runs, "second"))
			require.NoError(t, err)
			require.False(t, out.Replayed)
		})
	}
}

func TestTooLargeAnAnswerIsNamed(t *testing.T) {
	g, _ := newGuard(t, newStore(), &idempotency.Options{InlineLimit: 5, AnswerLimit: 10})
	_, err := idempotency.Do(t.Context(), g, key, fp, func(context.Context, *tx.Tx) (string, error) { return "12345678", nil })
	require.NoError(t, err, "10 bytes as JSON")
	other := key
	other.Client = "other"
	_, err = idempotency.Do(t.Context(), g, other, fp, func(context.Context, *tx.Tx) (string, error) { return "123456789", nil })
	require.ErrorIs(t, err, idempotency.ErrAnswerTooLarge)
	require.Equal(t, fault.Internal, fault.CodeOf(err))
}

func TestARejectionIsAnAnswer(t *testing.T) {
	s, runs := newStore(), 0
	g, _ := newGuard(t, s, nil)
	out, err := idempotency.Do(t.Context(), g, key, fp, func(context.Context, *tx.Tx) (string, error) {
		return "sold out", idempotency.ErrRejected
	})
	require.NoError(t, err)
	require.Equal(t, idempotency.Outcome[string]{Value: "sold out", Rejected: true}, out)
	require.Equal(t, []string{"claim", "begin", "start", "rollback", "fail"}, s.calls)

	out, err = idempotency.Do(t.Context(), g, key, fp, answer(&runs, "second"))
	require.NoError(t, err)
	require.Equal(t, idempotency.Outcome[string]{Value: "sold out", Replayed: true, Rejected: true}, out)
	require.Zero(t, runs)
}

func TestARejectionThatCannotBeStoredIsNotGiven(t *testing.T) {
	s := newStore()
	g, _ := newGuard(t, s, nil)
	s.failErr, s.failing["fail"] = fault.DBUnavailable, 1
	_, err := idempotency.Do(t.Context(), g, key, fp, func(context.Context, *tx.Tx) (string, error) {
		return "sold out", idempotency.ErrRejected
	})
	require.ErrorIs(t, err, fault.DBUnavailable)
}

func TestALostClaimIsReportedAndNotReleased(t *testing.T) {
	for lostAt, calls := range map[string][]string{
		"start":    {"claim", "begin", "start", "rollback"},
		"complete": {"claim", "begin", "start", "complete", "rollback"},
		"fail":     {"claim", "begin", "start", "rollback", "fail"},
	} {
		t.Run(lostAt, func(t *testing.T) {
			s, runs := newStore(), 0
			g, _ := newGuard(t, s, nil)
			s.lostAt = lostAt
			_, err := idempotency.Do(t.Context(), g, key, fp, func(context.Context, *tx.Tx) (string, error) {
				runs++
				if lostAt == "fail" {
					return "sold out", idempotency.ErrRejected
				}
				return "order 1", nil
			})
			require.ErrorIs(t, err, fault.IdempotencyInProgress)
			after, ok := fault.RetryAfter(err)
			require.True(t, ok)
			require.Equal(t, time.Second, after)
			require.Equal(t, calls, s.calls)
			require.Equal(t, lostAt != "start", runs == 1, "fn runs under a claim that is held")
			for _, rec := range s.rows {
				require.Equal(t, "another", rec.Owner)
				require.Equal(t, idempotency.Claimed, rec.State)
			}
			require.Len(t, s.rows, 1)
		})
	}
}

func TestARecordThatVanishesIsClaimedAgainWithinABound(t *testing.T) {
	s, runs := newStore(), 0
	g, _ := newGuard(t, s, nil)
	s.vanish = 4
	_, err := idempotency.Do(t.Context(), g, key, fp, answer(&runs, "x"))
	require.NoError(t, err)
	s.vanish = 1000
	_, err = idempotency.Do(t.Context(), g, key, fp, answer(&runs, "y"))
	require.ErrorIs(t, err, fault.IdempotencyInProgress)
	require.Equal(t, 1, runs)
}

func TestWorkThatWasInterruptedOutsideIsNotRunAgain(t *testing.T) {
	for name, c := range map[string]struct {
		state   idempotency.State
		expired bool
		want    fault.Code
	}{
		"abandoned":         {idempotency.Abandoned, false, fault.IdempotencyAbandoned},
		"executing":         {idempotency.Executing, false, fault.IdempotencyInProgress},
		"executing expired": {idempotency.Executing, true, fault.IdempotencyAbandoned},
	} {
		t.Run(name, func(t *testing.T) {
			s, runs := newStore(), 0
			g, _ := newGuard(t, s, nil)
			_, err := idempotency.Do(t.Context(), g, key, fp, answer(&runs, "x"))
			require.NoError(t, err)
			for scope, rec := range s.rows {
				rec.State = c.state
				s.rows[scope] = rec
			}
			s.expired = c.expired
			_, err = idempotency.Do(t.Context(), g, key, fp, answer(&runs, "y"))
			require.ErrorIs(t, err, c.want)
			require.Equal(t, 1, runs)
		})
	}
}

func TestDoBeginsItsOwnTransaction(t *testing.T) {
	s, runs := newStore(), 0
	g, runner := newGuard(t, s, nil)
	require.NoError(t, runner.InWrite(t.Context(), func(ctx context.Context, _ *tx.Tx) error {
		_, err := idempotency.Do(ctx, g, key, fp, answer(&runs, "x"))
		require.ErrorIs(t, err, tx.ErrNestedRoot)
		require.ErrorContains(t, err, "begin it outside of the transaction")
		return nil
	}))
	require.NotContains(t, s.calls, "claim")
}

func TestBadKeysAreRefusedBeforeAnythingIsLookedUp(t *testing.T) {
	for name, c := range map[string]struct {
		client, problem string
		code            fault.Code
	}{
		"missing":   {"", "", fault.IdempotencyKeyRequired},
		"too long":  {strings.Repeat("k", 256), "256 bytes", fault.IdempotencyKeyInvalid},
		"space":     {"a b", "0x20 at position 2", fault.IdempotencyKeyInvalid},
		"line feed": {"a\nSet-Cookie: x", "0x0a at position 2", fault.IdempotencyKeyInvalid},
		"not ASCII": {"ключ", "0xd0 at position 1", fault.IdempotencyKeyInvalid},
		"DEL":       {"a\x7f", "0x7f at position 2", fault.IdempotencyKeyInvalid},
		"NUL":       {"a\x00", "0x00 at position 2", fault.IdempotencyKeyInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			s, runs := newStore(), 0
			g, _ := newGuard(t, s, nil)
			k := key
			k.Client = c.client
			_, err := idempotency.Do(t.Context(), g, k, fp, answer(&runs, "x"))
			require.ErrorIs(t, err, c.code)
			if c.problem != "" {
				require.Contains(t, fault.FieldsOf(err)[0].Problem, c.problem)
			}
			require.Empty(t, s.calls)
		})
	}
}

func TestTheLongestKeyIsAccepted(t *testing.T) {
	s, runs := newStore(), 0
	g, _ := newGuard(t, s, nil)
	k := key
	k.Client = strings.Repeat("~", 255)
	_, err := idempotency.Do(t.Context(), g, k, fp, answer(&runs, "x"))
	require.NoError(t, err)
}

func TestFingerprintTellsEveryPartApart(t *testing.T) {
	seen := map[idempotency.Fingerprint]bool{}
	for _, f := range []idempotency.Fingerprint{
		idempotency.NewFingerprint("POST", "/a", "q", "t", []byte("b")),
		idempotency.NewFingerprint("PUT", "/a", "q", "t", []byte("b")),
		idempotency.NewFingerprint("POST", "/aq", "", "t", []byte("b")),
		idempotency.NewFingerprint("POST", "/a", "", "qt", []byte("b")),
		idempotency.NewFingerprint("POST", "/a", "q", "", []byte("tb")),
		idempotency.NewFingerprint("POST", "/a", "q", "t", nil),
	} {
		seen[f] = true
	}
	require.Len(t, seen, 6)
	require.True(t, seen[idempotency.NewFingerprint("POST", "/a", "q", "t", []byte("b"))])
}

// The body of a request is in memory once.
func TestFingerprintCopiesNoBody(t *testing.T) {
	body := bytes.Repeat([]byte("x"), 16<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	require.NotEqual(t, fp, idempotency.NewFingerprint("POST", "/orders", "", "application/json", body))
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	s := newStore()
	runner, err := tx.NewRunner(s, nil)
	require.NoError(t, err)
	keys, err := idempotency.NewKeyring("1", secret)
	require.NoError(t, err)

	_, err = idempotency.New(s, runner, idempotency.Keyring{}, nil)
	require.ErrorContains(t, err, "keyring")
	_, err = idempotency.New(nil, runner, keys, nil)
	require.ErrorContains(t, err, "driver")
	for field, o := range map[string]idempotency.Options{
		"Lease":       {Lease: -1},
		"Lease is 1":  {Lease: 1},
		"Expiry":      {Expiry: time.Second, Lease: time.Minute},
		"InlineLimit": {InlineLimit: 2 << 20},
		"AnswerLimit": {AnswerLimit: 8<<10 - 1},
		"Owner":       {Owner: strings.Repeat("o", 65)},
	} {
		_, err = idempotency.New(s, runner, keys, &o)
		require.ErrorContains(t, err, field)
	}
	_, err = idempotency.NewKeyring("", secret)
	require.ErrorContains(t, err, "version is empty")
	_, err = idempotency.NewKeyring("1", secret[:31])
	require.ErrorContains(t, err, "31 bytes")
}
