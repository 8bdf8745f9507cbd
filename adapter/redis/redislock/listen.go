package redislock

import (
	"context"

	"github.com/redis/rueidis"

	"caskeleton.dev/fault"
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
		err = fault.Text("the subscription ended")
	}
	return fault.Textf("redislock: listen: %w", told(err))
}
