package main

import (
	"context"
	"time"

	bsm "github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"caskeleton.dev/adapter/redis/redislock"
	"caskeleton.dev/lock"
)

const redisLease = 30 * time.Second

// redisLocks are the ways to lock by Redis: the kit's, the two bare commands, and the peers.
type redisLocks struct {
	kit, bare mutex
	peers     []mutex
	closing   []func()
}

func newRedisLocks(ctx context.Context, addr string) (_ *redisLocks, err error) {
	ls := &redisLocks{}
	defer func() {
		if err != nil {
			ls.close()
		}
	}()
	to := rueidis.ClientOption{InitAddress: []string{addr}}
	var drivers [2]lock.Driver
	var ruei [2]rueidislock.Locker
	var bsms [2]*bsm.Client
	var syncs [2]*redsync.Redsync
	for i := range drivers {
		d, err := redislock.Open(to, nil)
		if err != nil {
			return nil, err
		}
		drivers[i], ls.closing = d, append(ls.closing, d.Close)
		if ruei[i], err = rueidislock.NewLocker(rueidislock.LockerOption{ClientOption: to, KeyMajority: 1, KeyValidity: redisLease}); err != nil {
			return nil, err
		}
		client := redis.NewClient(&redis.Options{Addr: addr})
		ls.closing = append(ls.closing, ruei[i].Close, func() { _ = client.Close() })
		bsms[i], syncs[i] = bsm.New(client), redsync.New(goredis.NewPool(client))
	}
	if ls.kit, err = kitMutex(ctx, "redislock of the kit", drivers, true); err != nil {
		return nil, err
	}
	bare, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: to.InitAddress, DisableCache: true})
	if err != nil {
		return nil, err
	}
	ls.closing = append(ls.closing, bare.Close)
	ls.bare = mutex{name: "SET NX PX and EVALSHA", lock: bareRedis(bare)}
	ls.peers = []mutex{
		{name: "rueidislock", lock: func(ctx context.Context, node int, key string) (unlock, error) {
			_, release, err := ruei[node].WithContext(ctx, key)
			return func(context.Context) error { release(); return nil }, err
		}},
		{name: "bsm/redislock", lock: func(ctx context.Context, node int, key string) (unlock, error) {
			l, err := bsms[node].Obtain(ctx, key, redisLease, &bsm.Options{RetryStrategy: bsm.LinearBackoff(100 * time.Millisecond)})
			if err != nil {
				return nil, err
			}
			return l.Release, nil
		}},
		{name: "redsync", lock: func(ctx context.Context, node int, key string) (unlock, error) {
			m := syncs[node].NewMutex(key, redsync.WithExpiry(redisLease))
			return func(ctx context.Context) error {
				_, err := m.UnlockContext(ctx)
				return err
			}, m.LockContext(ctx)
		}},
	}
	return ls, nil
}

func (ls *redisLocks) close() {
	if ls.kit.stop != nil {
		ls.kit.stop()
	}
	for _, c := range ls.closing {
		c()
	}
}

// bareRedis cannot wait: the key has to be free.
func bareRedis(c rueidis.Client) func(context.Context, int, string) (unlock, error) {
	script := rueidis.NewLuaScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)
	return func(ctx context.Context, _ int, key string) (unlock, error) {
		err := c.Do(ctx, c.B().Set().Key(key).Value("token").Nx().PxMilliseconds(redisLease.Milliseconds()).Build()).Error()
		return func(ctx context.Context) error { return script.Exec(ctx, c, []string{key}, []string{"token"}).Error() }, err
	}
}
