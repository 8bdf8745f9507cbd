package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/internal/proxytest"
	"caskeleton.dev/tx"
	"caskeleton.dev/tx/txtest"
)

func TestConformance(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			txtest.TestDriver(t, txtest.Harness{New: func(t *testing.T) txtest.Store {
				t.Helper()
				truth := open(t, postgres.Config{DSN: migrationstest.DSN(t), MaxConns: 1})
				exec(t, truth, "create schema shop; create table shop.keys (key text primary key)")
				p := proxytest.New(t, through(t, truth.Config().DSN))
				db := open(t, postgres.Config{DSN: p.DSN(), ExecMode: mode, MaxConns: 2, AcquireTimeout: 500 * time.Millisecond})
				return txtest.Store{
					Driver: db, Limit: 2,
					Put: func(ctx context.Context, c tx.Conn, key string) error {
						q, err := postgres.QuerierOf(c)
						require.NoError(t, err)
						_, err = q.Exec(ctx, "insert into shop.keys (key) values ($1)", key)
						return err
					},
					Has: func(ctx context.Context, key string) (there bool, err error) {
						err = truth.QueryRow(ctx, "select exists (select from shop.keys where key = $1)", key).Scan(&there)
						return there, err
					},
					Lose: func(arrives bool) {
						if arrives {
							p.Break(proxytest.After, "commit\x00")
						} else {
							p.Break(proxytest.Before, "commit\x00")
						}
					},
				}
			}})
		})
	}
}
