package jointest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/internal/jointest/sqlcorders"
	"caskeleton.dev/outbox"
	"caskeleton.dev/tx"
)

// The transaction is pgx's, which sqlc's WithTx takes.
func placeWithSqlc(pool *pgxpool.Pool) place {
	queries := sqlcorders.New(pool)
	return func(ctx context.Context, ob *outbox.Outbox, id string, result error) error {
		dbtx, err := pool.Begin(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = dbtx.Rollback(ctx) }()
		if err := queries.WithTx(dbtx).InsertOrder(ctx, id); err != nil {
			return err
		}

		t, joined, err := postgres.Wrap(ctx, dbtx)
		if err != nil {
			return err
		}
		defer joined.RolledBack()
		if err := ob.Append(ctx, t, placed(id)); err != nil {
			return err
		}

		if result != nil {
			return result
		}
		if err := dbtx.Commit(ctx); err != nil {
			return err
		}
		return joined.Committed(ctx)
	}
}

// The other way round: the kit begins, and what Querier returns is sqlc's DBTX.
func placeWithRunner(runner *tx.Runner) place {
	return func(ctx context.Context, ob *outbox.Outbox, id string, result error) error {
		return runner.InWrite(ctx, func(ctx context.Context, t *tx.Tx) error {
			q, err := postgres.Querier(t)
			if err != nil {
				return err
			}
			if err := sqlcorders.New(q).InsertOrder(ctx, id); err != nil {
				return err
			}
			if err := ob.Append(ctx, t, placed(id)); err != nil {
				return err
			}
			return result
		})
	}
}

func TestSqlc(t *testing.T) {
	for mode, exec := range map[string]pgx.QueryExecMode{
		"cache_statement": pgx.QueryExecModeCacheStatement, "exec": pgx.QueryExecModeExec, "simple_protocol": pgx.QueryExecModeSimpleProtocol,
	} {
		t.Run(mode, func(t *testing.T) {
			s := open(t)
			cfg, err := pgxpool.ParseConfig(s.dsn)
			require.NoError(t, err)
			cfg.ConnConfig.DefaultQueryExecMode = exec
			pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
			require.NoError(t, err)
			t.Cleanup(pool.Close)
			s.prove(t, placeWithSqlc(pool))
		})
	}
	t.Run("runner", func(t *testing.T) {
		s := open(t)
		runner, err := tx.NewRunner(s.db, nil)
		require.NoError(t, err)
		s.prove(t, placeWithRunner(runner))
	})
}
