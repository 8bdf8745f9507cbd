package reqctx_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/reqctx"
)

func TestWhatIsNotSet(t *testing.T) {
	ctx := t.Context()
	require.Equal(t, reqctx.SystemActor, reqctx.Actor(ctx))
	require.Equal(t, reqctx.SystemActor, reqctx.Actor(reqctx.WithActor(ctx, "")), "an actor is never blank")
	require.Equal(t, reqctx.SystemActor, reqctx.Actor(reqctx.WithActor(ctx, " \t\n")), "an actor is never blank")
	require.Equal(t, "ada", reqctx.Actor(reqctx.WithActor(ctx, " ada\n")))
	require.Empty(t, reqctx.Tenant(ctx))
	require.Empty(t, reqctx.Principal(ctx))
	require.Empty(t, reqctx.RequestID(ctx))
}

func TestValuesDoNotMeet(t *testing.T) {
	ctx := reqctx.WithActor(t.Context(), "ada")
	ctx = reqctx.WithTenant(ctx, "acme")
	ctx = reqctx.WithPrincipal(ctx, "user-7")
	ctx = reqctx.WithRequestID(ctx, "r-1")
	require.Equal(t, "ada", reqctx.Actor(ctx))
	require.Equal(t, "acme", reqctx.Tenant(ctx))
	require.Equal(t, "user-7", reqctx.Principal(ctx))
	require.Equal(t, "r-1", reqctx.RequestID(ctx))
}
