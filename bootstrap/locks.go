package bootstrap

import (
	"context"
	"errors"
	"log/slog"

	"github.com/redis/rueidis"

	"caskeleton.dev/adapter/memory"
	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/pglock"
	"caskeleton.dev/adapter/redis/redislock"
	"caskeleton.dev/bootstrap/config"
	"caskeleton.dev/fault"
	"caskeleton.dev/internal/backoff"
	"caskeleton.dev/lock"
	"caskeleton.dev/lock/schedule"
)

// locks is who keeps the locks of a configuration.
type locks struct {
	driver lock.Driver
	upkeep []schedule.Job
	close  func()
}

// newLocks returns where locks are kept: in the process where it is the only one, otherwise in Redis where that is named, and else in PostgreSQL.
func newLocks(ctx context.Context, c *config.Config, db *postgres.DB, log *slog.Logger) (locks, error) {
	switch {
	case !c.MultiInstance:
		return locks{memory.NewLocks(nil), nil, func() {}}, nil
	case c.Redis.URL.IsSet():
		d, err := openRedis(ctx, c.Redis.URL, log)
		if err != nil {
			return locks{}, err
		}
		return locks{d, nil, d.Close}, nil
	default:
		d, err := pglock.New(db, nil)
		if err != nil {
			return locks{}, err
		}
		return locks{d, []schedule.Job{reaping(d)}, func() {}}, nil
	}
}

// openRedis connects. As for PostgreSQL, a server that cannot be reached yet is waited for; one that refuses us is not.
func openRedis(ctx context.Context, url config.Secret, log *slog.Logger) (*redislock.Driver, error) {
	opts, err := rueidis.ParseURL(url.Reveal())
	if err != nil { // which may quote the password
		return nil, errors.New("REDIS_URL cannot be parsed; write redis://user:password@host:6379, or rediss:// for TLS, with special characters percent-encoded")
	}
	for try := 1; ; try++ {
		d, err := redislock.Open(opts, nil)
		if answer, ok := errors.AsType[*rueidis.RedisError](err); err == nil || ok && !answer.IsLoading() && !answer.IsClusterDown() {
			return d, err
		}
		pause := backoff.Bound(firstPause, longestPause, try)
		log.WarnContext(ctx, "Redis is not reachable yet", "error", fault.Reason(err), "next_try_in", pause)
		if err := backoff.Wait(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// lock gives a its locker.
func (a *App) lock(ctx context.Context, s Service) error {
	c := a.Config
	kept, err := newLocks(ctx, c, a.DB, a.Log)
	if err != nil {
		return err
	}
	a.upkeep = append(a.upkeep, kept.upkeep...)
	a.close = kept.close
	a.Locker, err = lock.New(kept.driver, &lock.Options{Region: s.Name, Wait: c.Lock.WaitTime, Lease: c.Lock.LeaseTTL, Meter: s.Meter, Logger: a.Log})
	if err != nil {
		a.close()
	}
	return err
}
