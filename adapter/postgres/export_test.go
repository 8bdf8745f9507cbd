package postgres

// QuerierOf is Querier for tests that drive tx.Conn without a runner.
var QuerierOf = querierOf

// Config returns what db was opened with.
func (db *DB) Config() Config { return db.cfg }
