package pgtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// Template is a database that is prepared once, by whichever process comes first, and cloned for each test. The zero Template is empty.
type Template struct {
	// Name says what Prepare makes, and must change whenever that does: put a hash of the migrations into it. "" means no preparation.
	Name string
	// Prepare fills the database at dsn. It must have closed its connections when it returns.
	Prepare func(ctx context.Context, dsn string) error
}

// DSN returns the address of a clone that is this test's alone, and is dropped when it ends.
func (tm Template) DSN(tb testing.TB) string {
	tb.Helper()
	return tm.dsn(tb, sharedCluster(tb))
}

func (tm Template) dsn(tb testing.TB, c cluster) string {
	tb.Helper()
	var name string
	err := c.with(tb.Context(), func(conn *pgx.Conn) (err error) {
		name, err = tm.clone(tb.Context(), c, conn)
		return err
	})
	require.NoError(tb, err)
	tb.Cleanup(func() {
		ctx, cancel := cleanupContext(tb)
		defer cancel()
		if err := c.with(ctx, func(conn *pgx.Conn) error { return drop(ctx, conn, name) }); err != nil {
			tb.Errorf("pgtest: drop the test's database: %v", err)
		}
	})
	return c.address(name)
}

func (tm Template) clone(ctx context.Context, c cluster, conn *pgx.Conn) (string, error) {
	if tm.Name == "" {
		return create(ctx, conn, "template0")
	}
	for {
		template, err := tm.ensure(ctx, c, conn)
		if err != nil {
			return "", err
		}
		name, err := create(ctx, conn, template)
		// A sweep may have removed the template, for its age, since it was looked up.
		if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) && pg.Code == pgerrcode.InvalidCatalogName {
			continue
		}
		return name, err
	}
}

// ensure returns the name of the prepared database. It gets that name, by which others find it, only when it is complete.
func (tm Template) ensure(ctx context.Context, c cluster, conn *pgx.Conn) (string, error) {
	sum := sha256.Sum256([]byte(tm.Name))
	id := hex.EncodeToString(sum[:12])
	if name, err := findTemplate(ctx, conn, id); name != "" || err != nil {
		return name, err
	}
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock(hashtextextended('pgtest_template_' || $1, 0))`, id); err != nil {
		return "", fmt.Errorf("pgtest: lock template %q: %w", tm.Name, err)
	}
	// The lock ends with the connection at the latest.
	defer conn.Exec(context.WithoutCancel(ctx), `SELECT pg_advisory_unlock(hashtextextended('pgtest_template_' || $1, 0))`, id) //nolint:errcheck // as said
	if name, err := findTemplate(ctx, conn, id); name != "" || err != nil {
		return name, err
	}
	fresh, err := create(ctx, conn, "template0")
	if err != nil {
		return "", err
	}
	if err := tm.Prepare(ctx, c.address(fresh)); err != nil {
		return "", errors.Join(fmt.Errorf("pgtest: prepare template %q: %w", tm.Name, err), drop(context.WithoutCancel(ctx), conn, fresh))
	}
	name := "pgtest_template_" + fresh[len("pgtest_db_"):len("pgtest_db_")+10] + "_" + id
	for _, sql := range []string{
		"ALTER DATABASE " + fresh + " WITH IS_TEMPLATE true ALLOW_CONNECTIONS false", // a connection would be in the way of cloning
		"ALTER DATABASE " + fresh + " RENAME TO " + name,
	} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return "", fmt.Errorf("pgtest: publish template %q (Prepare must close its connections): %w", tm.Name, err)
		}
	}
	return name, nil
}

func findTemplate(ctx context.Context, conn *pgx.Conn, id string) (string, error) {
	var name string
	err := conn.QueryRow(ctx, `SELECT coalesce(max(datname::text), '') FROM pg_catalog.pg_database WHERE datname::text ~ ('^pgtest_template_[0-9]+_' || $1::text || '$')`, id).Scan(&name)
	if err != nil {
		return "", fmt.Errorf("pgtest: look for a template: %w", err)
	}
	return name, nil
}
