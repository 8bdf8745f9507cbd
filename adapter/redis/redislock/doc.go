// Package redislock keeps locks in Redis. Where Redis fails over to a replica, or restarts empty, a lock that is held may be granted a second
// time: replication is asynchronous, and what the primary had not yet passed on is lost with it. So it is also where Redis evicts keys. The
// first holder then hears of it when it renews or releases, and in between by its lease's local deadline alone; these locks keep work from
// being done twice at the same time, and what must be correct is kept so by the database.
//
// A lock is one key: the prefix and the digest of region and name in hex. Its value begins with the acquisition's token and a mark for waiters, and ends
// with the lock's name for people who look. Acquire is SET NX PX, everything else one script of one key, so that each costs one round trip
// and works in a cluster. Leases are measured by Redis: no node's clock has a say.
//
// A release is published, on one channel for all keys, where somebody waits for the key: the waiter has marked the value, and the release
// sees the mark. It is a hint alone. A user of Redis with limited rights needs the keys <prefix>*, the channel <prefix>released, and the
// commands GET, SET, SETRANGE, DEL, PTTL, PEXPIRE, PUBLISH, SUBSCRIBE, EVAL, EVALSHA, SCRIPT LOAD and PING; in a cluster also CLUSTER.
//
// An expired key is gone from Redis, so a release that finds nothing cannot tell whether the lease had merely passed or somebody had taken
// the lock meanwhile and given it back; it answers [lock.Lost] to both.
package redislock
