package bootstrap

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/idempotency"
)

func secretOf(version, letter string) string {
	return "APP_IDEMPOTENCY_KEY_" + version + "=" + strings.Repeat(letter, 32)
}

func TestAChangedSecretDoesNotStart(t *testing.T) {
	dsn := pgtest.DSN(t)
	service := Service{Name: "test", Routes: routes(nil)}
	for range 2 { // the same secret, twice
		r, listening := begin(t, configOf(t, "DATABASE_URL="+dsn, secretOf("V1", "k")), service)
		becomes(t, wait(t, listening)+"/readyz", 200)
		require.NoError(t, r.stop(t))
	}
	for name, environ := range map[string][]string{
		"a version that is current before others know it": {secretOf("V1", "k"), secretOf("V2", "n")},
		"other secret, same version":                      {secretOf("V1", "o")},
		"same secret, other version":                      {secretOf("V2", "k")},
		"the dev profile's own":                           nil,
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := begin(t, configOf(t, append(environ, "DATABASE_URL="+dsn)...), service)
			err := wait(t, r.result)
			require.ErrorIs(t, err, idempotency.ErrOtherSecret)
			for _, says := range []string{"key version", "restore the secret", "delete the rows of caskeleton.idempotency_key and caskeleton.idempotency_record"} {
				require.ErrorContains(t, err, says)
			}
			require.NotContains(t, err.Error(), strings.Repeat("o", 4))
		})
	}
}

func TestKeysRotate(t *testing.T) {
	dsn := pgtest.DSN(t)
	service := Service{Name: "test", Routes: routes(nil)}
	for _, environ := range [][]string{
		{secretOf("V1", "k")},
		{secretOf("V1", "k"), secretOf("V2", "n"), "APP_IDEMPOTENCY_CURRENT=V1"},
		{secretOf("V1", "k"), secretOf("V2", "n")},
	} {
		r, listening := begin(t, configOf(t, append(environ, "DATABASE_URL="+dsn)...), service)
		becomes(t, wait(t, listening)+"/readyz", 200)
		require.NoError(t, r.stop(t))
	}
}

// Two instances wait for the migrations of somebody else, with secrets of their own: one of them never becomes ready.
func TestASecretThatOnlyReadinessCanCompare(t *testing.T) {
	dsn := pgtest.DSN(t)
	var urls [2]string
	for i, letter := range []string{"a", "b"} {
		r, listening := begin(t, configOf(t, "APP_PROFILE=prod", "DATABASE_URL="+dsn, secretOf("V1", letter)), Service{Name: "test", Routes: routes(nil)})
		urls[i] = wait(t, listening) + "/readyz"
		t.Cleanup(func() { require.NoError(t, r.stop(t)) })
		code, _ := status(t, urls[i])
		require.Equal(t, 503, code)
	}
	m, err := migrations.New(dsn, migrations.All(), nil)
	require.NoError(t, err)
	_, err = m.Up(t.Context())
	require.NoError(t, err)

	becomes(t, urls[1], 200)
	code, body := status(t, urls[0])
	require.Equal(t, 503, code)
	require.JSONEq(t, `{"status":"unready","reason":"failing","failing":["database"]}`, body)
	becomes(t, urls[1], 200)
}
