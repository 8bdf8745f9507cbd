package tx

import "context"

// entry is what one runner has put into a context: its active transaction, or nil where an outer one is hidden from what runs there.
type entry struct {
	core  *core
	t     *Tx
	outer *entry
}

type entryKey struct{}

func entryOf(ctx context.Context) *entry {
	e, _ := ctx.Value(entryKey{}).(*entry)
	return e
}

// with returns a context in which t is the active transaction of c.
func (c *core) with(ctx context.Context, t *Tx) context.Context {
	return context.WithValue(ctx, entryKey{}, &entry{c, t, entryOf(ctx)})
}

// carried returns the transaction of c that ctx carries, ended or not, nil if none.
func (c *core) carried(ctx context.Context) *Tx {
	for e := entryOf(ctx); e != nil; e = e.outer {
		if e.core == c {
			return e.t
		}
	}
	return nil
}

// FromContext returns the innermost open transaction that ctx carries, of whichever runner. It is for code that passes transactions through
// the context, and for code that must notice one to stay outside of it. All other code should take a *[Tx] as an argument, which the
// compiler does not let a caller forget.
func FromContext(ctx context.Context) (*Tx, bool) {
	seen := map[*core]bool{}
	for e := entryOf(ctx); e != nil; e = e.outer {
		if seen[e.core] {
			continue
		}
		seen[e.core] = true
		if _, err := Unwrap(e.t); err == nil {
			return e.t, true
		}
	}
	return nil, false
}
