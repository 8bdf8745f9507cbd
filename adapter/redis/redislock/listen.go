package redislock

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/rueidis"

	"caskeleton.dev/lock"
)

// Listen implements [lock.Listener]. It shares the connection that the locks use, so that it is lost when theirs is.
func (d *Driver) Listen(ctx context.Context, ready func(), ring func(lock.Digest)) error {
	ctx = rueidis.WithOnSubscriptionHook(ctx, func(s rueidis.PubSubSubscription) {
		if s.Kind == "subscribe" {
			ready()
		}
	})
	err := d.client.Receive(ctx, d.client.B().Subscribe().Channel(d.channel).Build(), func(m rueidis.PubSubMessage) {
		if digest, ok := d.digest(m.Message); ok {
			ring(digest)
		}
	})
	if err == nil {
		err = errors.New("the subscription ended")
	}
	return fmt.Errorf("redislock: listen: %w", err)
}
