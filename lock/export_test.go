package lock

// Lines returns how many keys l has a line for.
func Lines(l *Locker) int {
	l.lines.mu.Lock()
	defer l.lines.mu.Unlock()
	return len(l.lines.byKey)
}

// Starve keeps l's timer from telling, as a machine that is busy does for a while.
func Starve(l *Lease) { l.timer.Stop() }
