package redislock

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"caskeleton.dev/fault"
	"caskeleton.dev/lock"
)

// maxLease is a hundred years. Redis could keep more, and sums of durations could not.
const maxLease = 100 * 365 * 24 * time.Hour

// MaxLease implements [lock.Driver]: a hundred years.
func (d *Driver) MaxLease() time.Duration { return maxLease }

// Acquire implements [lock.Driver], in one round trip where nobody holds the key, and two where somebody does.
func (d *Driver) Acquire(ctx context.Context, k lock.Key, token lock.Token, lease time.Duration, waiting bool) (lock.Holder, error) {
	key, text, px := d.key(k), value(token, k), millis(lease)
	// The script alone would do, at twice the price where nobody holds the key, which is the common case.
	err := d.client.Do(ctx, d.client.B().Set().Key(key).Value(text).Nx().PxMilliseconds(px).Build()).Error()
	if err == nil {
		return lock.Holder{}, nil
	}
	var h lock.Holder
	if rueidis.IsRedisNil(err) {
		wait := "0"
		if waiting {
			wait = "1"
		}
		h, err = holder(take.Exec(ctx, d.client, []string{key}, []string{text, strconv.FormatInt(px, 10), wait}))
	}
	if err != nil {
		return lock.Holder{}, fault.Textf("redislock: acquire: %w", told(err))
	}
	return h, nil
}

// Look implements [lock.Driver]. It asks the primary.
func (d *Driver) Look(ctx context.Context, k lock.Key) (lock.Holder, error) {
	h, err := holder(look.Exec(ctx, d.client, []string{d.key(k)}, nil))
	if err != nil {
		return lock.Holder{}, fault.Textf("redislock: look: %w", told(err))
	}
	return h, nil
}
