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

func applied(stream, file string) cli.Migration {
	return cli.Migration{Stream: stream, Version: 1, File: file, State: "applied"}
}

func (f fake) Up(ctx context.Context) ([]cli.Migration, error) {
	core := applied("core", "00001_core.sql")
	switch f {
	case "fresh":
		return []cli.Migration{core, applied("idempotency", "00001_record.sql")}, nil
	case "broken":
		return []cli.Migration{core}, errors.New("core: version 2 failed")
	case "slow":
		<-ctx.Done()
		return nil, errors.New("migrations: the statement was cancelled")
	}
	return nil, nil
}

func (f fake) Status(context.Context) ([]cli.Migration, error) {
	core := applied("core", "00001_core.sql")
	core.AppliedAt = now.Add(-72*time.Hour - 30*time.Second)
	return []cli.Migration{
		core,
		{Stream: "core", Version: 2, File: "00002_more.sql", State: "pending"},
		{Stream: "idempotency", Version: 1, File: "00001_record.sql", State: "pending"},
	}, nil
}

func (f fake) Verify(context.Context) error {
	if f == "behind" {
		return errors.New("core: behind by 1")
	}
	return nil
}
