package pgtest

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
)

// leftovers are databases of killed runs: old by the server's clock, and with nobody connected.
const leftovers = `
SELECT d.datname::text
FROM pg_catalog.pg_database d
WHERE extract(epoch FROM clock_timestamp()) > coalesce(
        substring(d.datname::text FROM '^pgtest_db_([0-9]+)_')::bigint + 3600,
        substring(d.datname::text FROM '^pgtest_template_([0-9]+)_')::bigint + 86400)
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_stat_activity a WHERE a.datid = d.oid)`

// sweep removes leftovers. One process at a time does; the others need not wait. What fails is left to the next run.
func sweep(tb testing.TB, c cluster) {
	tb.Helper()
	ctx := tb.Context()
	err := c.with(ctx, func(conn *pgx.Conn) error {
		var mine bool
		err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock(hashtextextended('pgtest_sweep', 0))`).Scan(&mine)
		if err != nil || !mine {
			return err
		}
		return dropLeftovers(ctx, conn)
	})
	if err != nil {
		tb.Logf("pgtest: leftovers of killed runs stay for now: %v", err)
	}
}

func dropLeftovers(ctx context.Context, conn *pgx.Conn) error {
	rows, err := conn.Query(ctx, leftovers)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		// Without FORCE: whoever connects in this moment has found a use for it.
		_, err1 := conn.Exec(ctx, "ALTER DATABASE "+name+" WITH IS_TEMPLATE false")
		_, err2 := conn.Exec(ctx, "DROP DATABASE IF EXISTS "+name)
		errs = append(errs, err1, err2)
	}
	return errors.Join(errs...)
}
