package postgres

import (
	"context"
	"time"
)

// witnessKeep is how long a row is kept that a transaction with tx.Options.Witness has left. Nobody asks for it after the seconds of
// RunnerOptions.ResolveTimeout.
const witnessKeep = time.Hour

// reapBatch keeps a statement short.
const reapBatch = 5000

const reapSQL = `
delete from caskeleton.commit_witness where id in (
  select id from caskeleton.commit_witness where written_at < clock_timestamp() - $1::bigint * interval '1 microsecond'
  order by written_at limit $2
)`

// ReapWitnesses deletes the rows of tx.Options.Witness that are older than an hour, in short transactions, and returns how many. It is to
// run every few minutes, on any number of nodes. Where it fails, what it deleted before stays deleted.
func (db *DB) ReapWitnesses(ctx context.Context) (int64, error) {
	for total := int64(0); ; {
		tag, err := db.Exec(ctx, reapSQL, witnessKeep.Microseconds(), reapBatch)
		total += tag.RowsAffected()
		if err != nil || tag.RowsAffected() < reapBatch {
			return total, err
		}
	}
}
