package postgres_test

import (
	"context"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/fault"
)

func TestADedicatedSessionIsNotOfThePool(t *testing.T) {
	db := full(t, postgres.Config{ApplicationName: "shop"})
	other := with(t, db.Config().DSN, func(u *url.URL) { u.RawQuery = "sslmode=disable" })
	for _, dsn := range []string{"", other} {
		conn, err := db.Dedicated(t.Context(), dsn)
		require.NoError(t, err)
		defer func() { require.NoError(t, conn.Close(context.WithoutCancel(t.Context()))) }()
		var name, path, idle string
		require.NoError(t, conn.QueryRow(t.Context(),
			`select current_setting('application_name'), current_setting('search_path'), current_setting('idle_session_timeout')`).Scan(&name, &path, &idle))
		require.Equal(t, [3]string{"shop", "", "0"}, [3]string{name, path, idle})
	}
	require.EqualValues(t, 1, db.Stat().TotalConns())
}

func TestADedicatedSessionThatCannotBeHad(t *testing.T) {
	db := open(t, postgres.Config{DSN: pgtest.DSN(t)})
	for _, dsn := range []string{"postgres://u:open-sesame@127.0.0.1:1/x", "postgres://u:open-sesame@%zz"} {
		_, err := db.Dedicated(t.Context(), dsn)
		require.Error(t, err)
		require.NotContains(t, err.Error(), "open-sesame")
	}
	_, err := db.Dedicated(t.Context(), "postgres://u@127.0.0.1:1/x")
	require.ErrorIs(t, err, fault.DBUnavailable)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = db.Dedicated(ctx, "")
	require.Equal(t, context.Canceled, err)
}
