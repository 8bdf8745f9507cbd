package tx

// Tx is one open transaction, given to fn by a [Runner]. It is opaque: adapters reach their connection through [Unwrap].
type Tx struct {
	conn Conn
	done bool
}

// Unwrap returns the driver's connection, for the adapter that made it. It returns [ErrDone] after the end of the transaction.
func Unwrap(t *Tx) (Conn, error) {
	if t == nil || t.done {
		return nil, ErrDone
	}
	return t.conn, nil
}
