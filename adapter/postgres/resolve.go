package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"caskeleton.dev/tx"
)

var _ tx.Resolver = (*conn)(nil)

// Resolve implements [tx.Resolver]. It connects anew, to what is the primary now, whatever has become of the pool. The server ends its wait
// for the open transaction after LockTimeout; a look that hangs elsewhere ends a little later.
func (c *conn) Resolve(ctx context.Context) (tx.Outcome, error) {
	if c.witness == nil {
		return tx.Unknown, nil
	}
	look, cancel := context.WithTimeout(ctx, c.db.cfg.LockTimeout+c.db.silence)
	defer cancel()
	outcome, err := c.look(look)
	return outcome, c.db.classifier.Translate(ctx, "postgres.Resolve", err)
}

func (c *conn) look(ctx context.Context) (tx.Outcome, error) {
	select { // all transactions of a server that has crashed come at once
	case c.db.looking <- struct{}{}:
		defer func() { <-c.db.looking }()
	case <-ctx.Done():
		return tx.Unknown, ctx.Err()
	}
	fresh, err := pgx.ConnectConfig(ctx, c.db.fresh.Copy())
	if err != nil {
		return tx.Unknown, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = fresh.Close(ctx) // which rolls back, where nothing else has
	}()
	o, settings := c.db.inBegin(tx.BeginOptions{})
	begin, err := beginSQL(o)
	if err != nil {
		return tx.Unknown, err
	}
	t, err := fresh.BeginTx(ctx, pgx.TxOptions{BeginQuery: begin + settings})
	if err != nil {
		return tx.Unknown, err
	}
	outcome, err := c.witness(ctx, t)
	if err != nil {
		return tx.Unknown, err
	}
	_ = t.Rollback(ctx) // the connection is closed next
	return outcome, nil
}
