// Package embedded runs a private PostgreSQL for `make run` and for tests, on Linux and macOS, as root or not.
//
// [Start] finds the binaries ([Find]: the pinned npm package, else a PostgreSQL of the system), makes the database cluster, and starts
// the server or attaches to the one that already runs in that directory. The server listens on 127.0.0.1 alone, asks for a random
// password, and belongs to no process: it outlives whoever started it, killed or not, until [Stop].
//
// Whether a server runs is asked of the kernel, not of a pid file: the server inherits a locked file, and the lock lasts for as long as
// any process of it lives. A pid that was recycled, or that is another one's in a container, cannot be mistaken for it.
//
// The data directory holds:
//
//	data/       the cluster, owned by the user that PostgreSQL runs as
//	password    of the superuser, readable by the owner alone
//	port        the port to listen on again
//	server.log  the log of the last launch; server.log.1 that of the one before
//	lock        held while somebody starts or stops the server
//	running     held by the server itself; it holds the pid
package embedded
