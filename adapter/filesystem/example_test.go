package filesystem_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"

	"caskeleton.dev/adapter/filesystem"
	"caskeleton.dev/adapter/memory"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

// An answer that is too large to be kept beside its record is a file.
func ExampleNewResponses() {
	ctx := context.Background()
	dir, _ := os.MkdirTemp("", "responses")
	defer func() { _ = os.RemoveAll(dir) }()
	files, err := filesystem.NewResponses(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = files.Close() }()

	runner, _ := tx.NewRunner(memory.Transactions{}, nil)
	keys, _ := idempotency.NewKeyring("1", bytes.Repeat([]byte("s"), idempotency.MinSecret))
	guard, _ := idempotency.New(memory.NewRecords(nil), runner, keys, &idempotency.Options{InlineLimit: 100, Responses: files})

	key := idempotency.Key{Method: "POST", Route: "/reports", Client: "7f9c2ba4"}
	for range 2 {
		out, err := idempotency.Do(ctx, guard, key, idempotency.Fingerprint{}, func(context.Context, *tx.Tx) (string, error) {
			return strings.Repeat("row\n", 1000), nil
		})
		fmt.Println(len(out.Value), "bytes, replayed:", out.Replayed, err)
	}
	refs, err := files.List(ctx, "", 10)
	fmt.Println(len(refs), "file", err)
	// Output:
	// 4000 bytes, replayed: false <nil>
	// 4000 bytes, replayed: true <nil>
	// 1 file <nil>
}
