package idempotency_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

// framed is parts one behind the other, each behind its length.
func framed(parts ...string) []byte {
	var b []byte
	for _, part := range parts {
		b = append(binary.BigEndian.AppendUint64(b, uint64(len(part))), part...)
	}
	return b
}

// What is stored is found by these digests: another way to make them would forget all keys, and run repeats.
func TestDigestsAreAsDocumented(t *testing.T) {
	long := strings.Repeat("r", 300)
	k := idempotency.Key{Tenant: "t", Principal: "", Method: "POST", Route: "/" + long, Client: "abc"}
	g, _ := newGuard(t, newStore(), nil)
	_, err := idempotency.DoExternal(t.Context(), g, k, fp, func(_ context.Context, e *idempotency.Execution) (string, error) {
		mac := hmac.New(sha256.New, secret)
		mac.Write(framed("1", "t", "", "POST", "/"+long, "abc"))
		require.Equal(t, hex.EncodeToString(mac.Sum(nil)), e.Key())
		return "", nil
	})
	require.NoError(t, err)
	require.Equal(t, idempotency.Fingerprint(sha256.Sum256(framed("POST", "/"+long, "a=1", "text/plain", "body"))),
		idempotency.NewFingerprint("POST", "/"+long, "a=1", "text/plain", []byte("body")))
}

// The same text, cut elsewhere, is another key and another request.
func TestNoTwoListsOfPartsReadTheSame(t *testing.T) {
	whole := "abcdefgh"
	var cuts [][]string // of the text into five parts
	for a := range len(whole) + 1 {
		for b := a; b <= len(whole); b++ {
			for c := b; c <= len(whole); c++ {
				for d := c; d < len(whole); d++ { // a client key is never empty
					cuts = append(cuts, []string{whole[:a], whole[a:b], whole[b:c], whole[c:d], whole[d:]})
				}
			}
		}
	}
	s := newStore()
	g, _ := newGuard(t, s, nil)
	fingerprints := map[idempotency.Fingerprint]bool{}
	for _, p := range cuts {
		out, err := idempotency.Do(t.Context(), g, idempotency.Key{Tenant: p[0], Principal: p[1], Method: p[2], Route: p[3], Client: p[4]}, fp, answer(new(int), "x"))
		require.NoError(t, err)
		require.False(t, out.Replayed, "%q", p)
		fingerprints[idempotency.NewFingerprint(p[0], p[1], p[2], p[3], []byte(p[4]))] = true
	}
	require.Len(t, s.rows, len(cuts))
	require.Len(t, fingerprints, len(cuts))
}

func TestAKeyringKeepsItsSecretToItself(t *testing.T) {
	s, given := newStore(), bytes.Clone(secret)
	runner, err := tx.NewRunner(s, nil)
	require.NoError(t, err)
	keys, err := idempotency.NewKeyring("1", given)
	require.NoError(t, err)
	clear(given)
	g, err := idempotency.New(s, runner, keys, nil)
	require.NoError(t, err)
	_, err = idempotency.Do(t.Context(), g, key, fp, answer(new(int), "x"))
	require.NoError(t, err)
	same, _ := newGuard(t, s, nil)
	out, err := idempotency.Do(t.Context(), same, key, fp, answer(new(int), "y"))
	require.NoError(t, err)
	require.Equal(t, idempotency.Outcome[string]{Value: "x", Replayed: true}, out)
}
