package outbox

import "errors"

// ErrBrokerDown is what a publisher's error is where the broker as a whole cannot be reached or refuses everything.
var ErrBrokerDown = errors.New("outbox: the broker is down")
