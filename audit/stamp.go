package audit

import "time"

// Stamp is what a row's audit columns hold. Times are the database's, of the transaction that wrote them.
type Stamp struct {
	CreatedAt time.Time
	CreatedBy string
	UpdatedAt time.Time
	UpdatedBy string
}
