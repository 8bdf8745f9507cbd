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

// Len returns how many leases are kept, those that have passed among them.
func (d *Locks) Len() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.leases)
}
