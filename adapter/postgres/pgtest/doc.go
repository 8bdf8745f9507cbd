// Package pgtest gives every test a fresh PostgreSQL database of its own, in some tens of milliseconds.
//
// The server is that of DATABASE_URL (a role that may create databases), or else one embedded server that all test processes of the
// user share. The first test starts it, without fsync and in memory where there is room ([embedded.SharedDataDir]), and it is left running
// for the next; `make stop-tests` ends it ([embedded.StopShared]). PGTEST_VERSION chooses the major version of the servers that tests start, 15 to 18; `make test-matrix` runs them on
// all. PGTEST_PGBOUNCER is the path of the PgBouncer to test with.
//
// Databases are dropped when their test ends. What a killed run left behind is removed by a later one: databases after an hour,
// templates after a day, private servers after an hour.
//
// Every DSN has an empty search_path, so that an unqualified name fails here and not first in production. A test that cannot
// have PostgreSQL fails, and says what to install; none is skipped.
package pgtest
