package redislock

import (
	"context"
	"strconv"
	"time"

	"caskeleton.dev/fault"
	"caskeleton.dev/lock"
)

// Renew implements [lock.Driver], in one round trip.
func (d *Driver) Renew(ctx context.Context, k lock.Key, token lock.Token, lease time.Duration) (bool, error) {
	n, err := renew.Exec(ctx, d.client, []string{d.key(k)}, []string{tokenText(token), strconv.FormatInt(millis(lease), 10)}).AsInt64()
	if err != nil {
		return false, fault.Textf("redislock: renew: %w", told(err))
	}
	return n == 1, nil
}

// Release implements [lock.Driver], in one round trip. It never answers [lock.Expired].
func (d *Driver) Release(ctx context.Context, k lock.Key, token lock.Token) (lock.Freed, error) {
	n, err := release.Exec(ctx, d.client, []string{d.key(k)}, []string{tokenText(token), d.channel}).AsInt64()
	if err != nil {
		return 0, fault.Textf("redislock: release: %w", told(err))
	}
	if n == 1 {
		return lock.Released, nil
	}
	return lock.Lost, nil
}
