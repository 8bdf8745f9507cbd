package idempotency_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

func TestEnrollTellsSecretsApart(t *testing.T) {
	s := newStore()
	runner, err := tx.NewRunner(s, nil)
	require.NoError(t, err)
	enroll := func(version string, secret []byte) error {
		keys, err := idempotency.NewKeyring(version, secret)
		require.NoError(t, err)
		g, err := idempotency.New(s, runner, keys, nil)
		require.NoError(t, err)
		return g.Enroll(t.Context())
	}
	require.NoError(t, enroll("1", secret))
	require.NoError(t, enroll("1", secret), "again")
	require.NotContains(t, s.check, string(secret))
	other := bytes.Repeat([]byte("o"), 32)
	err = enroll("1", other)
	require.ErrorIs(t, err, idempotency.ErrOtherSecret)
	require.ErrorContains(t, err, "key version 1")
	require.NotContains(t, err.Error(), strings.Repeat("o", 4))
	require.ErrorIs(t, enroll("2", secret), idempotency.ErrOtherSecret, "a scope is made of the version too")
}
