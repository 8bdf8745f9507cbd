package outbox

import "caskeleton.dev/fault"

// ErrBrokerDown is what a publisher's error is where the broker as a whole cannot be reached or refuses everything.
var ErrBrokerDown error = fault.Text("outbox: the broker is down")
