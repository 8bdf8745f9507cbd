package pglock_test

import (
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/lock"
)

// TestTheRunbookWorks statement by statement: the key that it frees is free.
func TestTheRunbookWorks(t *testing.T) {
	text, err := os.ReadFile("../../../docs/runbooks/stuck-lock.md")
	require.NoError(t, err)
	statements := regexp.MustCompile(`(?ms)^    ((?:select|delete) .*?);$`).FindAllSubmatch(text, -1)
	require.Len(t, statements, 5)

	n := newNode(t, postgres.Config{})
	k := lock.Key{Region: "billing", Name: "invoices/2026-07"}
	_, err = n.locks.Acquire(t.Context(), k, newToken(), time.Hour, false)
	require.NoError(t, err)
	for _, s := range statements {
		n.exec(t, string(s[1]))
	}
	h, err := n.locks.Look(t.Context(), k)
	require.NoError(t, err)
	require.False(t, h.Held)
}
