package intlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/lock"
)

// A lease that passes while a statement waits for the row has passed.
func TestTheClockIsReadOnceTheRowIsLocked(t *testing.T) {
	dsn := pgtest.DSN(t)
	for name, late := range map[string]func(ctx context.Context, g node, k lock.Key, token lock.Token) (any, error){
		"acquire": func(ctx context.Context, g node, k lock.Key, _ lock.Token) (any, error) {
			return g.Acquire(ctx, k, newToken(), time.Minute, false)
		},
		"renew": func(ctx context.Context, g node, k lock.Key, token lock.Token) (any, error) {
			return g.Renew(ctx, k, token, time.Minute)
		},
		"release": func(ctx context.Context, g node, k lock.Key, token lock.Token) (any, error) {
			return g.Release(ctx, k, token)
		},
	} {
		t.Run(name, func(t *testing.T) {
			refill(t, dsn, layout70)
			g, k := newNode(t, dsn, ""), key("k")
			token := g.acquires(t, k, time.Minute)
			locker := pgtest.Connect(t, dsn)
			// The row is only locked and stays as it is, so that PostgreSQL has no reason to look at it again.
			g.exec(t, "update public.int_lock set expired_after = clock_timestamp() at time zone 'UTC' + interval '400 milliseconds'")
			_, err := locker.Exec(t.Context(), "begin; select from public.int_lock for update")
			require.NoError(t, err)
			type answer struct {
				got any
				err error
			}
			answers := make(chan answer, 1)
			go func() {
				got, err := late(t.Context(), g, k, token)
				answers <- answer{got, err}
			}()
			g.queued(t)
			require.Eventually(t, func() bool {
				return get[bool](t, g, "select expired_after <= clock_timestamp() at time zone 'UTC' from public.int_lock")
			}, 30*time.Second, time.Millisecond)
			_, err = locker.Exec(t.Context(), "commit")
			require.NoError(t, err)
			a := <-answers
			require.NoError(t, a.err)
			require.Equal(t, map[string]any{"acquire": lock.Holder{}, "renew": false, "release": lock.Expired}[name], a.got)
		})
	}
}

// A holder that came after the statement's snapshot is not in it, and is found all the same.
func TestAcquireFindsAHolderThatCameMeanwhile(t *testing.T) {
	dsn := database(t, layout70)
	g, k := newNode(t, dsn, ""), key("k")
	g.acquires(t, k, time.Minute)
	require.NoError(t, g.expire(t.Context(), k))
	locker := pgtest.Connect(t, dsn)
	_, err := locker.Exec(t.Context(), "begin; update public.int_lock set client_id = 'next', expired_after = clock_timestamp() at time zone 'UTC' + interval '1 hour'")
	require.NoError(t, err)
	answers := make(chan lock.Holder, 1)
	go func() {
		h, err := g.Acquire(t.Context(), k, newToken(), time.Minute, false)
		if err != nil {
			t.Error(err)
		}
		answers <- h
	}()
	g.queued(t)
	_, err = locker.Exec(t.Context(), "commit")
	require.NoError(t, err)
	h := <-answers
	require.True(t, h.Held)
	require.Greater(t, h.Left, 30*time.Minute)
}

func TestARepeatOfAnAcquireIsNoLoss(t *testing.T) {
	g, k, token := newNode(t, database(t, layout70), ""), key("k"), newToken()
	for range 2 {
		h, err := g.Acquire(t.Context(), k, token, time.Minute, false)
		require.NoError(t, err)
		require.Equal(t, lock.Holder{}, h)
	}
	g.releases(t, k, token, lock.Released)
}

// What other hands left in the table never makes a call fail, or go on for ever.
func TestOddEnds(t *testing.T) {
	g, k := newNode(t, database(t, layout70), ""), key("k")
	g.exec(t, "alter table public.int_lock alter expired_after drop not null")
	g.acquires(t, k, time.Minute)
	for _, held := range []string{"null", "'infinity'", "'200000-01-01'"} {
		g.exec(t, "update public.int_lock set expired_after = "+held)
		require.Equal(t, g.MaxLease(), g.refused(t, k).Left, held)
	}
	g.exec(t, "update public.int_lock set expired_after = '-infinity'")
	h, err := g.Look(t.Context(), k)
	require.NoError(t, err)
	require.Equal(t, lock.Holder{}, h)
	token := g.acquires(t, k, time.Nanosecond)
	require.Eventually(t, func() bool {
		h, err := g.Look(t.Context(), k)
		return err == nil && !h.Held
	}, 30*time.Second, time.Millisecond)
	g.releases(t, k, token, lock.Expired)
}

// raise makes the next n statements that write fail as if they had collided.
const raise = `
create sequence public.collisions;
create function public.collide() returns trigger language plpgsql as $$ begin
	if nextval('public.collisions') <= %N then raise exception 'collided' using errcode = '%S'; end if;
	return coalesce(new, old);
end $$;
create trigger collide before insert or update or delete on public.int_lock for each row execute function public.collide()`

// TestCollisionsAreTriedAgain by the port, which knows them by their codes.
func TestCollisionsAreTriedAgain(t *testing.T) {
	dsn := pgtest.DSN(t)
	for _, state := range []string{"40001", "40P01"} {
		refill(t, dsn, layout70+";"+replace(raise, "%N", "3", "%S", state))
		g := newNode(t, dsn, "")
		locker, err := lock.New(g, nil)
		require.NoError(t, err)
		lease, err := locker.Acquire(t.Context(), "k", nil)
		require.NoError(t, err)
		g.exec(t, "alter sequence public.collisions restart")
		require.NoError(t, lease.Renew(t.Context(), time.Minute))
		g.exec(t, "alter sequence public.collisions restart")
		require.NoError(t, lease.Release(t.Context()))
	}
}
