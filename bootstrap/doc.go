// Package bootstrap is the composition root: it turns a configuration into a running service, in one order, and takes it down in the
// reverse one.
//
// Up: listen (alive, not ready), connect to PostgreSQL or start the embedded one, migrate, wire the ports, build the service's routes,
// ready. Down: unready, let requests finish, close the pool.
package bootstrap
