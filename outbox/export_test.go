package outbox

var (
	Ceiling    = ceiling
	FullJitter = fullJitter
	Printable  = printable
)
