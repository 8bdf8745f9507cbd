package inbox

import "fmt"

// Outcome says what became of a delivery, and so what the broker is told.
type Outcome int

// The outcomes of [Inbox.Handle].
const (
	Handled   Outcome = iota + 1 // it took effect and is committed: acknowledge
	Duplicate                    // it took effect before, the handler did not run: acknowledge
	Busy                         // another delivery of it is still open: give it back, with the delay of the error
	Failed                       // it has not taken effect, or that is not known: give it back, with the delay of the error
	Parked                       // RECOVERY_REQUIRED is committed, an operator has it: tell the broker to stop
)

// String returns the name in lower case, as in the metric's label.
func (o Outcome) String() string {
	switch o {
	case Handled:
		return "handled"
	case Duplicate:
		return "duplicate"
	case Busy:
		return "busy"
	case Failed:
		return "failed"
	case Parked:
		return "parked"
	}
	return fmt.Sprintf("Outcome(%d)", int(o))
}
