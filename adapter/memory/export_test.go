package memory

import "caskeleton.dev/lock"

// Expire has the lease of whoever holds k pass, for the suite.
func (d *Locks) Expire(k lock.Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if l, ok := d.leases[k.Digest()]; ok {
		l.until = d.now()
		d.leases[k.Digest()] = l
	}
}
