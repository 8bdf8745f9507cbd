// Package routertest shows, with the routers themselves, how handlers of net/http, chi, gin and echo are guarded by idempotency keys, and runs
// one suite over all of them. It is a module of its own, so that none of them is the kit's dependency.
package routertest
