package outbox

import "context"

// Publisher hands events to a broker. Safe for concurrent use.
type Publisher interface {
	// Publish sends a run: consecutive events of one aggregate. It returns how many of them, from the first on, the broker has named as
	// stored; nothing is stored after an event that failed. err says why the run ended early, and is [ErrBrokerDown] (errors.Is) where
	// nothing is wrong with the event: the relay then pauses and spends no attempt. An event may be sent again after an unknown outcome,
	// under the same id. Operators see err's [fault.Reason].
	Publish(ctx context.Context, run []Event) (acked int, err error)
}
