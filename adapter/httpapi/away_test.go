package httpapi_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/filesystem"
	"caskeleton.dev/adapter/httpapi"
	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/fault"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

// away is a response store that cannot be reached while err is set.
type away struct {
	idempotency.ResponseStore

	err error
}

func (a *away) Put(ctx context.Context, ref idempotency.Ref, object []byte) error {
	if a.err != nil {
		return a.err
	}
	return a.ResponseStore.Put(ctx, ref, object)
}

func (a *away) Get(ctx context.Context, ref idempotency.Ref) ([]byte, error) {
	if a.err != nil {
		return nil, a.err
	}
	return a.ResponseStore.Get(ctx, ref)
}

// A store that is away is no reason to run an operation again, or to store half of its answer.
func TestAResponseStoreThatIsAwayLosesNothing(t *testing.T) {
	f := newFixture(t)
	files, err := filesystem.NewResponses(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, files.Close()) })
	store := &away{ResponseStore: files}
	f.guard = f.newGuard(t, nil, &idempotency.Options{Responses: store})
	body := bytes.Repeat([]byte("x"), 9000)
	s := f.serve(t, httpapi.Policy{}, answers(httpapi.Response{Status: http.StatusCreated, Body: body}))

	store.err = io.ErrUnexpectedEOF
	res := post(t, s, "k", `{}`)
	require.Equal(t, http.StatusInternalServerError, res.StatusCode)
	require.NotContains(t, res.body, io.ErrUnexpectedEOF.Error())
	require.Zero(t, f.count(t, "shop.effect"))
	require.Empty(t, f.states(t), "the key is given back")

	store.err = nil
	require.Equal(t, string(body), post(t, s, "k", `{}`).body)
	store.err = io.ErrUnexpectedEOF
	res = post(t, s, "k", `{}`)
	require.Equal(t, http.StatusInternalServerError, res.StatusCode)
	require.NotContains(t, res.body, io.ErrUnexpectedEOF.Error())
	store.err = nil
	res = post(t, s, "k", `{}`)
	require.Equal(t, "true", res.Header.Get("Idempotent-Replayed"))
	require.Equal(t, string(body), res.body)
	require.Equal(t, 1, f.count(t, "shop.effect"))
}

// A handler that ends its transaction itself is told to leave that alone; that it succeeded nobody is told.
func TestATransactionThatAHandlerEndsIsNoSuccess(t *testing.T) {
	f := newFixture(t)
	for _, sql := range []string{"commit", "rollback", "commit and chain"} {
		s := f.serve(t, httpapi.Policy{}, func(ctx context.Context, tr *tx.Tx, r *httpapi.Request) (*httpapi.Response, error) {
			q, err := postgres.Querier(tr)
			if err != nil {
				return nil, err
			}
			_, err = q.Exec(ctx, sql)
			assert.Equal(t, fault.DBCommitUnknown, fault.CodeOf(err))
			return created(ctx, tr, r)
		})
		for range 2 {
			res := post(t, s, "key-"+sql[:3]+fmt.Sprint(len(sql)), `{}`)
			require.GreaterOrEqual(t, res.StatusCode, 400, sql)
		}
	}
	require.Equal(t, []string{"CLAIMED", "CLAIMED", "CLAIMED"}, f.states(t))
}
