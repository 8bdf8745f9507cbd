package pgidempotency_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/idempotency"
)

func TestEnroll(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			f := newFixture(t, mode)
			require.NoError(t, f.records.Enroll(t.Context(), "1", []byte("check")))
			require.NoError(t, f.records.Enroll(t.Context(), "1", []byte("check")), "again")
			err := f.records.Enroll(t.Context(), "1", []byte("other"))
			require.ErrorIs(t, err, idempotency.ErrOtherSecret)
			require.ErrorContains(t, err, "under this version")
			err = f.records.Enroll(t.Context(), "2", []byte("check"))
			require.ErrorIs(t, err, idempotency.ErrOtherSecret)
			require.ErrorContains(t, err, "that of version 1")
			require.NoError(t, f.records.Enroll(t.Context(), "1", []byte("check")), "the others changed nothing")
			require.Equal(t, 1, f.enrolled(t))

			_, err = f.db.Exec(t.Context(), `delete from caskeleton.idempotency_key`)
			require.NoError(t, err)
			require.NoError(t, f.records.Enroll(t.Context(), "2", []byte("other")))
		})
	}
}

func (f *fixture) enrolled(t *testing.T) (n int) {
	t.Helper()
	require.NoError(t, f.db.QueryRow(t.Context(), `select count(*) from caskeleton.idempotency_key`).Scan(&n))
	return n
}

// Of instances that start at once with different secrets, one is right, and stays so.
func TestEnrollAtOnce(t *testing.T) {
	f := newFixture(t, "")
	var errs [8]error
	var start, ends sync.WaitGroup
	start.Add(1)
	for i := range errs {
		ends.Go(func() {
			start.Wait()
			errs[i] = f.records.Enroll(t.Context(), fmt.Sprint(i%4), []byte{byte(i % 2)})
		})
	}
	start.Done()
	ends.Wait()
	require.Equal(t, 1, f.enrolled(t))
	var version, enrolled int
	require.NoError(t, f.db.QueryRow(t.Context(), `select version::int, get_byte(check_value, 0) from caskeleton.idempotency_key`).Scan(&version, &enrolled))
	for i, err := range errs {
		if i%4 == version {
			require.NoError(t, err, i)
			require.Equal(t, enrolled, i%2)
		} else {
			require.ErrorIs(t, err, idempotency.ErrOtherSecret, i)
		}
	}
}
