package redislock

import (
	"cmp"
	"context"
	"encoding/hex"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"caskeleton.dev/fault"
	"caskeleton.dev/lock"
)

const (
	defaultPrefix = "caskeleton:lock:"
	defaultDead   = 3 * time.Second // a connection that answers nothing for that long is given up
)

// Options configure a [Driver]. The zero value is the default.
type Options struct {
	Prefix string // of the keys and the channel; "" means caskeleton:lock:
}

// Driver is a [lock.Driver] and a [lock.Listener] over Redis 6 or later: a single server, Sentinel or a cluster. Safe for concurrent use.
type Driver struct {
	client  rueidis.Client
	prefix  string
	channel string
}

var (
	_ lock.Driver   = (*Driver)(nil)
	_ lock.Listener = (*Driver)(nil)
)

// Open connects to Redis, which must be there, over a connection of the driver's own: rueidis.ParseURL makes client from a URL. It decides the
// settings that locks depend on (PipelineMultiplex, AlwaysPipelining, DisableRetry, DisableCache, SendToReplicas), and the rest stays as it
// is; a zero ConnWriteTimeout or Dialer.Timeout becomes 3 s. o may be nil.
func Open(client rueidis.ClientOption, o *Options) (*Driver, error) {
	prefix := defaultPrefix
	if o != nil {
		prefix = cmp.Or(o.Prefix, defaultPrefix)
	}
	// One connection keeps the order: the release that follows a given-up acquisition must not overtake it.
	client.PipelineMultiplex = -1
	client.AlwaysPipelining = true
	client.DisableAutoPipelining = false
	client.DisableRetry = true // the port retries, and Listen must tell of a lost connection
	client.DisableCache = true
	client.SendToReplicas = nil // a replica knows who held the lock a moment ago
	client.ConnWriteTimeout = cmp.Or(client.ConnWriteTimeout, defaultDead)
	client.Dialer.Timeout = cmp.Or(client.Dialer.Timeout, defaultDead)
	c, err := rueidis.NewClient(client)
	if err != nil {
		return nil, fault.Textf("redislock: connect: %w", told(err))
	}
	d := &Driver{client: c, prefix: prefix, channel: prefix + "released"}
	if err := d.load(client.ConnWriteTimeout); err != nil {
		c.Close()
		return nil, err
	}
	return d, nil
}

// load makes the scripts known: a call that is given up before Redis has asked for the script's text would do nothing.
func (d *Driver) load(bound time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	for _, node := range d.client.Nodes() {
		for _, text := range scriptTexts {
			if err := node.Do(ctx, node.B().ScriptLoad().Script(text).Build()).Error(); err != nil {
				return fault.Textf("redislock: load scripts: %w", told(err))
			}
		}
	}
	return nil
}

// Close ends the connection. Calls that are under way fail.
func (d *Driver) Close() { d.client.Close() }

// key returns the Redis key of k.
func (d *Driver) key(k lock.Key) string {
	digest := k.Digest()
	return d.prefix + hex.EncodeToString(digest[:])
}

// digest undoes key.
func (d *Driver) digest(key string) (lock.Digest, bool) {
	text, ok := strings.CutPrefix(key, d.prefix)
	var digest lock.Digest
	if !ok || len(text) != hex.EncodedLen(len(digest)) {
		return digest, false
	}
	_, err := hex.Decode(digest[:], []byte(text))
	return digest, err == nil
}

// millis is a duration as Redis takes it, rounded up: a lease that ends a little later in the store than for its holder harms nobody.
func millis(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }
