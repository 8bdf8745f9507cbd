package postgres

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5/pgconn"

	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

// Witness finds out what became of a transaction by looking for a row that only that transaction wrote. It is called in a READ COMMITTED
// transaction of its own, on another connection, which is rolled back afterwards. It must ask for a lock that the first transaction holds,
// so that it waits until that one has ended: until then, what it sees may change. [tx.Unknown] without an error means that the row is gone,
// so that nobody can tell.
type Witness func(ctx context.Context, q DBTX) (tx.Outcome, error)

// AddWitness has w asked if the COMMIT of t gets no answer. A store calls it right after it has written the row that w looks for. One
// witness is enough: others are ignored, unless a rollback to a savepoint has undone the row of the first. In a transaction that its caller
// commits it returns [tx.ErrJoined], since nobody would ask.
func AddWitness(t *tx.Tx, w Witness) error {
	c, err := connOf(t)
	if err != nil {
		return err
	}
	if err := c.turn.take(); err != nil {
		return err
	}
	defer c.turn.leave()
	if err := c.usable("postgres.AddWitness"); err != nil {
		return err
	}
	if c.witness == nil {
		c.witness, c.witnessDepth = w, len(c.scopes)
	}
	return nil
}

// witnessTrust is how old a transaction's row may be for its absence to prove anything, well below witnessKeep: a transaction may be
// open for longer than its row is kept.
const witnessTrust = witnessKeep / 2

// newWitness returns the id of a row that is written with BEGIN, and who looks for it.
func newWitness(began time.Time) (id string, w Witness) {
	var key [16]byte
	_, _ = rand.Read(key[:]) // it never fails
	id = hex.EncodeToString(key[:])
	return id, func(ctx context.Context, q DBTX) (tx.Outcome, error) {
		// It waits for the transaction that has written the key, if that is open.
		tag, err := q.Exec(ctx, `insert into caskeleton.commit_witness (id) values ($1) on conflict (id) do nothing`, id)
		switch {
		case err != nil:
			return tx.Unknown, err
		case tag.RowsAffected() == 0:
			return tx.Committed, nil
		case time.Since(began) > witnessTrust:
			return tx.Unknown, nil
		}
		return tx.NotCommitted, nil
	}
}

// noWitness says what to do where the table is not there.
func noWitness(err error) error {
	if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != pgerrcode.UndefinedTable {
		return err
	}
	return fault.Textf("postgres: tx.Options.Witness needs caskeleton.commit_witness of the stream core; run the migrations: %w", err)
}
