// Package reqctx carries who is asking, and for whom, in a context: actor, tenant, principal and request id. adapter/httpapi
// sets the request id, and the service's own middleware the rest, once it knows who is calling. Logs, idempotency scopes and audit
// columns read them. Values are plain strings, set once near the edge and never changed.
package reqctx

import (
	"context"
	"strings"
)

// SystemActor is who acts where nobody does: jobs, relays, migrations.
const SystemActor = "system"

type key int

const (
	actorKey key = iota
	tenantKey
	principalKey
	requestIDKey
)

func with(ctx context.Context, k key, v string) context.Context { return context.WithValue(ctx, k, v) }

func from(ctx context.Context, k key) string {
	v, _ := ctx.Value(k).(string)
	return v
}

// WithActor returns a context in which actor is who acts: the name that audit columns and operator records get.
func WithActor(ctx context.Context, actor string) context.Context { return with(ctx, actorKey, actor) }

// Actor returns who acts, without space around, and [SystemActor] where nobody was set; it is never blank.
func Actor(ctx context.Context) string {
	if a := strings.TrimSpace(from(ctx, actorKey)); a != "" {
		return a
	}
	return SystemActor
}

// WithTenant returns a context whose work belongs to tenant.
func WithTenant(ctx context.Context, tenant string) context.Context {
	return with(ctx, tenantKey, tenant)
}

// Tenant returns the tenant, "" where there is none.
func Tenant(ctx context.Context) string { return from(ctx, tenantKey) }

// WithPrincipal returns a context whose caller was authenticated as principal.
func WithPrincipal(ctx context.Context, principal string) context.Context {
	return with(ctx, principalKey, principal)
}

// Principal returns the authenticated caller, "" where there is none.
func Principal(ctx context.Context) string { return from(ctx, principalKey) }

// WithRequestID returns a context that belongs to the request with this id.
func WithRequestID(ctx context.Context, id string) context.Context {
	return with(ctx, requestIDKey, id)
}

// RequestID returns the request's id, "" outside a request.
func RequestID(ctx context.Context) string { return from(ctx, requestIDKey) }
