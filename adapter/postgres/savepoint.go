package postgres

import "slices"

type savepoint struct {
	name     string
	readOnly bool
}

// savepoints are the open ones of a transaction, the outermost first.
type savepoints []savepoint

// readOnly reports whether one of them refuses writes.
func (s savepoints) readOnly() bool {
	return slices.ContainsFunc(s, func(p savepoint) bool { return p.readOnly })
}

// end removes the latest of that name, with those inside it.
func (s *savepoints) end(name string) {
	for i, p := range slices.Backward(*s) {
		if p.name == name {
			*s = (*s)[:i]
			return
		}
	}
}
