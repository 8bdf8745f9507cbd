package cli_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"caskeleton.dev/bootstrap/cli"
)

// fake is a migrator whose state is the database's name.
type fake string

func openFake(dsn string, _ *slog.Logger) (cli.Migrator, error) {
	name := dsn[strings.LastIndex(dsn, "/")+1:]
	if name == "never" {
		return nil, errors.New("the runtime role must not migrate where there is another")
	}
	return fake(name), nil
}

func applied(stream, file string, ago time.Duration) cli.Migration {
	return cli.Migration{Stream: stream, Version: 1, File: file, State: "applied", AppliedAt: now.Add(-ago)}
}

func (f fake) Up(ctx context.Context) ([]cli.Migration, error) {
	core := applied("core", "0001_core.sql", 5*time.Second)
	switch f {
	case "fresh":
		return []cli.Migration{core, applied("idempotency", "0001_record.sql", 5*time.Second)}, nil
	case "broken":
		return []cli.Migration{core}, errors.New("core: version 2 failed")
	case "slow":
		<-ctx.Done()
		return nil, errors.New("migrations: the statement was cancelled")
	}
	return nil, nil
}

func (f fake) Status(context.Context) ([]cli.Migration, error) {
	return []cli.Migration{
		applied("core", "0001_core.sql", 72*time.Hour+30*time.Second),
		{Stream: "core", Version: 2, File: "0002_more.sql", State: "pending"},
		{Stream: "idempotency", Version: 1, File: "0001_record.sql", State: "pending"},
	}, nil
}

func (f fake) Verify(context.Context) error {
	if f == "behind" {
		return errors.New("core: behind by 1")
	}
	return nil
}
