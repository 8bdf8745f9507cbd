package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

// Begin implements [tx.Driver]: it acquires a connection within AcquireTimeout and begins a transaction on it, in one round trip
// whatever the options. One that may read from the replica does so where that is near enough, and reachable; else it gets the primary.
func (db *DB) Begin(ctx context.Context, o tx.BeginOptions) (tx.Conn, error) {
	if !o.Replica {
		return db.begin(ctx, o)
	}
	if !o.ReadOnly {
		return nil, errors.New("postgres: Replica is set for a transaction that may write; a replica takes no writes")
	}
	if r := db.replica.serving(); r != nil {
		c, err := r.begin(ctx, o)
		if !errors.Is(err, fault.DBUnavailable) {
			return c, err
		}
		db.replica.become(ctx, ReplicaState{Reason: "unreachable", Lag: -1}, err) // until the next look
	}
	return db.begin(ctx, o)
}

func (db *DB) begin(ctx context.Context, o tx.BeginOptions) (tx.Conn, error) {
	o, settings := db.inBegin(o)
	begin, err := beginSQL(o)
	if err != nil {
		return nil, err
	}
	begin += settings
	var witness Witness
	if o.Witness && !o.ReadOnly {
		var id string
		id, witness = newWitness(time.Now())
		begin += "; insert into caskeleton.commit_witness (id) values ('" + id + "')"
	}
	pooled, err := db.acquire(ctx, "postgres.Begin")
	if err != nil {
		return nil, err
	}
	server := pooled.Conn().PgConn()
	db.limit(server, 1, db.cfg.StatementTimeout)
	t, err := pooled.Conn().BeginTx(ctx, pgx.TxOptions{BeginQuery: begin})
	unlimit(server)
	if err != nil {
		err = db.translate(ctx, server, "postgres.Begin", err)
		if witness != nil {
			err = noWitness(err)
		}
		pooled.Release() // destroys it where half of the message took effect
		return nil, err
	}
	return &conn{db: db, pooled: pooled, tx: t, tap: tapOf(server), statement: cmp.Or(o.StatementTimeout, db.cfg.StatementTimeout), readOnly: o.ReadOnly, turn: newTurn(), witness: witness}, nil
}

// beginSQL is one simple-protocol message. READ WRITE is never asked for: a standby refuses it with a state that says nothing, where a
// write says 25006.
func beginSQL(o tx.BeginOptions) (string, error) {
	var b strings.Builder
	switch o.Isolation {
	case tx.ReadCommitted:
		b.WriteString("begin isolation level read committed")
	case tx.RepeatableRead:
		b.WriteString("begin isolation level repeatable read")
	case tx.Serializable:
		b.WriteString("begin isolation level serializable")
	default:
		return "", fmt.Errorf("postgres: Isolation is %d; use tx.ReadCommitted, tx.RepeatableRead or tx.Serializable", o.Isolation)
	}
	if o.ReadOnly {
		b.WriteString(" read only; select") // READ WRITE can be set before the first query alone, which this is: fn cannot leave
	}
	for _, t := range []struct {
		field, setting string
		value          time.Duration
	}{
		{"StatementTimeout", "statement_timeout", o.StatementTimeout},
		{"LockTimeout", "lock_timeout", o.LockTimeout},
		{"IdleTimeout", "idle_in_transaction_session_timeout", o.IdleTimeout},
	} {
		if t.value < 0 || t.value > maxTimeout {
			return "", fmt.Errorf("postgres: %s is %s; use a duration between 1ms and %s, or 0 for the configured default", t.field, t.value, maxTimeout.Truncate(time.Hour))
		}
		if t.value > 0 {
			fmt.Fprintf(&b, "; set local %s = %d", t.setting, Millis(t.value))
		}
	}
	return b.String(), nil
}
