// Package postgres is the kit's PostgreSQL: a bounded pool, the driver of tx.Runner, and the translation of what the server answers
// into fault codes. It needs PostgreSQL 15 or later and pgx v5.
//
//	db, err := postgres.Open(ctx, postgres.Config{DSN: dsn}, nil)
//	runner, err := tx.NewRunner(db, nil)
//	err = runner.InWrite(ctx, func(ctx context.Context, t *tx.Tx) error {
//		q, err := postgres.Querier(t) // fits sqlc's DBTX
//		...
//	})
//
// Every error that leaves the package is translated: it carries a [fault.Code] where the table of SQLSTATEs has one, and its text is
// that of a [Diagnostic], which names the SQLSTATE and the schema objects at fault and never repeats the server's message, SQL,
// values, hosts or DSN. errors.As still finds the *pgconn.PgError. [pgx.ErrNoRows] stays itself.
//
// The server keeps statement_timeout. Where it, or the network, has gone silent, a call ends 5 s after that with DB_STATEMENT_TIMEOUT and
// its connection is destroyed: a call of several statements counts as one, a batch as its number, rows until they are closed. A timeout
// set by raw SQL is not known here; use tx.Options. What deferred constraints and triggers do in a COMMIT the server does not bound: there
// tx.RunnerOptions.CommitTimeout counts, and a request to cancel follows it. Should that be lost, the server goes on with its locks, while the
// caller has DB_COMMIT_UNKNOWN once ResolveTimeout is over too.
//
// A COMMIT whose answer is lost is looked up by a [Witness], where the transaction has one: docs/adr/0008.
//
// SET LOCAL ends with the transaction. What SQL sets by SET, or forgets by DISCARD, is taken back when its connection goes back to the pool, at
// two round trips; what a function sets by set_config stays, and so does everything behind a pooler.
//
// Sessions have an empty search_path, so names must be qualified (pg_catalog is always searched), and the time zone UTC. What commits by
// itself runs at READ COMMITTED, whatever the default of the role or the database; a transaction runs at the level that tx.Options names.
//
// Config.ReadDSN adds a read pool on a replica, for transactions that ask for it with tx.Options.Replica. Its lag is asked for each second;
// above Config.MaxReplicaLag, and while it is not to be reached, the primary serves them, which [DB.Replica] tells.
//
// Open recognises a pooler by its connections' pid. Behind one, sessions are everybody's: nothing is set at connect, and the startup
// parameters of the DSN are dropped; the settings of a transaction ride in its BEGIN, and a statement outside of one has the role's own,
// which `migrate grants` writes and without which Open fails. cache_statement works there only where the pooler carries prepared
// statements along (PgBouncer 1.21 with max_prepared_statements), and is else refused. Such a pooler keeps plans by their text: after DDL that
// changes what a statement returns (select *), a single statement is tried unprepared, but transactions get DB_STALE_PLAN until the pooler's
// RECONNECT, which belongs at the end of such a migration.
package postgres
