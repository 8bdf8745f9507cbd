//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/broker/natsbroker/embedded"
)

// checkBroker reads all that the broker ever stored and compares it with what was recorded: nothing is missing, nothing is there that did
// not commit, and the first copies of an aggregate's events are in their order. Repeats are allowed, as long as they are the same.
func checkBroker(t *testing.T, db *pgx.Conn, dataDir string) {
	t.Helper()
	recorded := map[string]string{} // by id: aggregate and sequence
	rows, err := db.Query(t.Context(), `select id::text, aggregatetype || '/' || aggregateid, sequence from caskeleton.outbox_event`)
	require.NoError(t, err)
	var id, aggregate string
	var sequence int64
	_, err = pgx.ForEachRow(rows, []any{&id, &aggregate, &sequence}, func() error {
		recorded[id] = fmt.Sprintf("%s %d", aggregate, sequence)
		return nil
	})
	require.NoError(t, err)

	published, last, repeats := map[string]bool{}, map[string]int64{}, 0
	readStream(t, dataDir, func(h nats.Header) {
		id, aggregate := h.Get("ce-id"), h.Get("ce-aggregatetype")+"/"+h.Get("ce-aggregateid")
		sequence, err := strconv.ParseInt(h.Get("ce-aggregatesequence"), 10, 64)
		require.NoError(t, err)
		require.Equal(t, recorded[id], fmt.Sprintf("%s %d", aggregate, sequence), "event %s was published and not recorded so", id)
		if published[id] {
			repeats++
			return
		}
		published[id] = true
		require.Equal(t, last[aggregate]+1, sequence, "order of %s", aggregate)
		last[aggregate] = sequence
	})
	require.Len(t, published, len(recorded), "events that never left")
	t.Logf("%d events published, %d of them again", len(published), repeats)
}

// readStream hands the headers of all messages to see, in the stream's order. The service, whose process the broker ran in, is gone.
func readStream(t *testing.T, dataDir string, see func(nats.Header)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	server, err := embedded.Start(ctx, embedded.Options{DataDir: filepath.Join(dataDir, "nats")})
	require.NoError(t, err)
	defer server.Shutdown()
	nc, err := nats.Connect("", nats.InProcessServer(server))
	require.NoError(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	stream, err := js.Stream(ctx, "events")
	require.NoError(t, err)
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	require.NoError(t, err)
	for left := stream.CachedInfo().State.Msgs; left > 0; {
		batch, err := consumer.Fetch(int(min(left, 500)), jetstream.FetchMaxWait(10*time.Second))
		require.NoError(t, err)
		for m := range batch.Messages() {
			see(m.Headers())
			left--
		}
		require.NoError(t, batch.Error())
	}
}
