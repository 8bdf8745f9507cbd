package pglock

import (
	"context"
	"encoding/hex"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/fault"
	"caskeleton.dev/lock"
)

// channel carries the digests of released keys, in hex.
const channel = "caskeleton_lock"

// quiet is how long a session that hears nothing is believed to be alive, and farewell how long one is waited for.
const (
	quiet    = 15 * time.Second
	farewell = 5 * time.Second
)

// Listen implements [lock.Listener], on a session of its own. A session that has been quiet is asked for a sign of life.
func (l *Locks) Listen(ctx context.Context, ready func(), ring func(lock.Digest)) error {
	conn, err := l.db.Dedicated(ctx, l.listenDSN)
	if errors.Is(err, postgres.ErrPooler) {
		return errShared
	}
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.farewell)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	if _, err := conn.Exec(ctx, `listen `+channel); err != nil {
		return l.errs.Translate(ctx, "pglock.Listen", err)
	}
	ready()
	for {
		waiting, cancel := context.WithTimeout(ctx, l.quiet)
		n, err := conn.WaitForNotification(waiting)
		nothing := waiting.Err() != nil
		cancel()
		switch {
		case err == nil:
			var d lock.Digest
			if got, err := hex.DecodeString(n.Payload); err == nil && len(got) == len(d) {
				ring(lock.Digest(got))
			}
			continue
		case nothing && ctx.Err() == nil && !conn.IsClosed():
			err = l.ping(ctx, conn)
		}
		if err != nil {
			return l.errs.Translate(ctx, "pglock.Listen", err)
		}
	}
}

// errShared is a session that is not ours alone: LISTEN would stay behind in it, and notifications would reach somebody else.
var errShared error = fault.Text("pglock: LISTEN needs a session of its own, and this one is a pooler's; set ListenDSN to an address of the server itself")

func (l *Locks) ping(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, l.farewell)
	defer cancel()
	return conn.Ping(ctx)
}
