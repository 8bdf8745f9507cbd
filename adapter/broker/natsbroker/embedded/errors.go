package embedded

import "errors"

// ErrInUse means that another server has the data directory.
var ErrInUse = errors.New("the data directory is in use by another NATS server")
