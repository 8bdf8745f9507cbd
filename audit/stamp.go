package audit

import "time"

// Stamp is what a row's audit columns hold. Times are the database's, of the transaction that wrote them.
type Stamp struct {
	CreatedAt time.Time
	CreatedBy string
	UpdatedAt time.Time
	UpdatedBy string
}

// New returns the stamp of what actor made at that time.
func New(actor string, at time.Time) Stamp { return Stamp{at, actor, at, actor} }

// Updated returns the stamp of what actor changed at that time. UpdatedAt does not go back: of two transactions, the one that began first may
// be the last to write.
func (s Stamp) Updated(actor string, at time.Time) Stamp {
	if at.After(s.UpdatedAt) {
		s.UpdatedAt = at
	}
	s.UpdatedBy = actor
	return s
}
