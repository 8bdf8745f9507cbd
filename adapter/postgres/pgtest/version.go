package pgtest

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"

	"caskeleton.dev/adapter/postgres/embedded"
)

// versionEnv chooses the major version that tests run on, for `make test-matrix`.
const versionEnv = "PGTEST_VERSION"

// find returns the programs of the server to test with.
func find(ctx context.Context, logger *slog.Logger) (embedded.Installation, error) {
	asked := os.Getenv(versionEnv)
	if asked == "" {
		return embedded.Find(ctx, logger)
	}
	major, err := strconv.Atoi(asked)
	if err != nil {
		return embedded.Installation{}, fmt.Errorf("pgtest: %s is %q: set it to a major version, such as 17, or leave it out", versionEnv, asked)
	}
	return embedded.FindMajor(ctx, major, logger)
}
