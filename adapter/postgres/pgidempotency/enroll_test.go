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
			enroll := func(current string, pairs ...string) error {
				checks := map[string][]byte{}
				for i := 0; i < len(pairs); i += 2 {
					checks[pairs[i]] = []byte(pairs[i+1])
				}
				return f.records.Enroll(t.Context(), current, checks)
			}
			require.NoError(t, enroll("1", "1", "check"))
			require.NoError(t, enroll("1", "1", "check"), "again")
			for says, err := range map[string]error{
				"a new secret gets a new one":                        enroll("1", "1", "other"),
				"that of version 1, which the keyring has to accept": enroll("2", "2", "check"),
				"let all instances accept it first":                  enroll("2", "1", "check", "2", "new"),
				"and claim by 1 until then":                          enroll("2", "1", "check", "2", "new"),
				"knows another secret under version":                 enroll("1", "1", "other", "2", "new"),
			} {
				require.ErrorIs(t, err, idempotency.ErrOtherSecret)
				require.ErrorContains(t, err, says)
			}
			require.NoError(t, enroll("1", "1", "check"), "the others changed nothing")
			require.Equal(t, 1, f.enrolled(t))

			require.NoError(t, enroll("1", "1", "check", "2", "new", "3", "newer"), "others are accepted")
			require.Equal(t, 3, f.enrolled(t))
			require.NoError(t, enroll("2", "1", "check", "2", "new", "3", "newer"), "and then become current")
			err := enroll("1", "1", "check")
			require.ErrorIs(t, err, idempotency.ErrOtherSecret)
			require.ErrorContains(t, err, "that of version 2")

			_, err = f.db.Exec(t.Context(), `delete from caskeleton.idempotency_key`)
			require.NoError(t, err)
			require.NoError(t, enroll("2", "2", "other", "3", "newer"))
			require.Equal(t, 2, f.enrolled(t))
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
			errs[i] = f.records.Enroll(t.Context(), fmt.Sprint(i%4), map[string][]byte{fmt.Sprint(i % 4): {byte(i % 2)}})
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
