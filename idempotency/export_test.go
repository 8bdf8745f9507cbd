package idempotency

// Lookups returns how many keys of g are being looked up.
func Lookups(g *Guard) int {
	g.lookups.mu.Lock()
	defer g.lookups.mu.Unlock()
	return len(g.lookups.byKey)
}
