package jointest

import (
	_ "entgo.io/ent/dialect/sql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/jmoiron/sqlx"
	_ "github.com/lib/pq"
	_ "github.com/stretchr/testify/require"
	_ "github.com/uptrace/bun"
	_ "github.com/uptrace/bun/dialect/pgdialect"
	_ "gorm.io/driver/postgres"
	_ "gorm.io/gorm"

	_ "caskeleton.dev/outbox"
)
