package postgres

import (
	"io"
	"time"

	"caskeleton.dev/tx"
)

// QuerierOf is Querier for tests that drive tx.Conn without a runner.
func QuerierOf(c tx.Conn) (DBTX, error) { return c.(*conn).querier(), nil }

// SetSilence replaces the margin over statement_timeout, before db is used.
func (db *DB) SetSilence(d time.Duration) { db.silence = d }

// Config returns what db was opened with.
func (db *DB) Config() Config { return db.cfg }

// Witnessed reports whether the outcome of c could be told.
func Witnessed(c tx.Conn) bool { return c.(*conn).witness != nil }

// NewWitness is what Begin makes for tx.Options.Witness.
var NewWitness = newWitness

// BehindPooler reports whether db has recognised one.
func BehindPooler(db *DB) bool { return db.route.pooler }

// Tapped returns what a tap says of all that r holds.
func Tapped(r io.Reader) (ended, rolledBack bool, err error) {
	t := &tap{in: r}
	_, err = io.Copy(io.Discard, t)
	return t.ended, t.rolledBack, err
}

// Outlasts says whether SQL costs the next user's session a restore.
var Outlasts = outlasts

// ReplicaPool returns the pool of db's replica, nil until that was reached once.
func ReplicaPool(db *DB) *DB { return db.replica.db.Load() }
