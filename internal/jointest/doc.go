// Package jointest shows, with the libraries themselves, how code that begins its own transactions appends to the kit's outbox in them:
// database/sql with pgx and with lib/pq, sqlx, gorm, ent, bun and sqlc. It is a module of its own, so that none of them is the kit's dependency.
package jointest
