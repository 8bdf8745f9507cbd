package intlock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres/intlock"
	"caskeleton.dev/lock"
)

// The rows are what JDK 17 says of UUID.fromString for what Spring Integration 7.0 takes for a UUID, and of UUID.nameUUIDFromBytes for the rest.
func TestKeysAreSprings(t *testing.T) {
	for name, want := range map[string]string{
		"":                                       "d41d8cd9-8f00-3204-a980-0998ecf8427e",
		"hello":                                  "5d41402a-bc4b-3a76-b971-9d911017c592",
		"order:42":                               "d978d567-2fe1-37dc-b580-4df0b784b958",
		"주문:42 🚚":                                "e8b2ef26-93aa-3d4f-b68c-426eae3a0be5",
		"f81d4fae-7dec-11d0-a765-00a0c91e6bf6":   "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
		"F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6":   "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
		"f81d4fae-7dec-11d0-a765-00a0c91e6bf6 ":  "68231f5e-97f8-3a39-9148-24d27736a4e2",
		" f81d4fae-7dec-11d0-a765-00a0c91e6bf6":  "9e6a43da-7afb-364b-8a81-efc9a229da4c",
		"{f81d4fae-7dec-11d0-a765-00a0c91e6bf6}": "139f01a1-cbad-3154-9d20-750a008fdd92",
		"f81d4fae7dec11d0a76500a0c91e6bf6":       "399de61b-2ff2-37f7-a36e-36a8ff803329",
		"f81d4fae-7dec-11d0-a765-00a0c91e6bfg":   "5de4a08d-cf78-3a9f-8bf3-468357d856fb",
		"1-1-1-1":                                "55998bab-939d-30e7-b4e7-6e04d168f1f0",
	} {
		region, got, err := intlock.RowOf(lock.Key{Region: "r", Name: name})
		require.NoError(t, err)
		require.Equal(t, want, got, name)
		require.Equal(t, "r", region)
	}
	_, line, err := intlock.RowOf(key("f81d4fae-7dec-11d0-a765-00a0c91e6bf6\n"))
	require.NoError(t, err)
	require.NotEqual(t, "f81d4fae-7dec-11d0-a765-00a0c91e6bf6", line)
}

func TestRegionsHaveAnEnd(t *testing.T) {
	g := newNode(t, database(t, layout70), "")
	longest := lock.Key{Region: strings.Repeat("한", 100), Name: "k"}
	g.releases(t, longest, g.acquires(t, longest, time.Minute), lock.Released)
	for region, want := range map[string]string{
		strings.Repeat("한", 101): "intlock: Region has 101 characters, and the column REGION keeps 100; shorten it, on the Java side too",
		"a\x00b":                 `intlock: Region is "a\x00b", which PostgreSQL cannot keep; use UTF-8 without NUL`,
		"\xff":                   `intlock: Region is "\xff", which PostgreSQL cannot keep; use UTF-8 without NUL`,
	} {
		k := lock.Key{Region: region, Name: "k"}
		_, err := g.Acquire(t.Context(), k, newToken(), time.Minute, false)
		require.EqualError(t, err, want)
		_, err = g.Look(t.Context(), k)
		require.EqualError(t, err, want)
		_, err = g.Renew(t.Context(), k, newToken(), time.Minute)
		require.EqualError(t, err, want)
		_, err = g.Release(t.Context(), k, newToken())
		require.EqualError(t, err, want)
	}
}
