package pgtest

// ExecModes are the values of postgres.Config.ExecMode, the ways in which pgx talks to the server. A test that runs SQL with arguments runs in each.
func ExecModes() []string {
	return []string{"cache_statement", "cache_describe", "exec", "simple_protocol"}
}
