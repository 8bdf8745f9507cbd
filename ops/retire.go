package ops

import (
	"context"
	"fmt"

	"caskeleton.dev/tx"
)

// RetireKey removes a version of the idempotency secret from the store once there is no record of it any more, so that instances start
// without it. Who did so, and why, is recorded with it, as "idempotency.retire". No instance may have the version as its current one:
// nothing checks that.
func (o *Idempotency) RetireKey(ctx context.Context, version string, act Act) error {
	if version == "" {
		return invalid("version", "is missing", "give it as APP_IDEMPOTENCY_KEY_<version> and the records have it, in lower case")
	}
	if err := act.validate(); err != nil {
		return err
	}
	kept, err := act.on("idempotency.retire", kindKey, version, nil, nil)
	if err != nil {
		return err
	}
	done, err := o.guard.Retire(ctx, version, func(ctx context.Context, t *tx.Tx) error { return o.trail.Record(ctx, t, kept) })
	switch {
	case err != nil:
		return err
	case !done:
		return invalid("version", fmt.Sprintf("is %q, which is not known, or which records are of", version), "give it as the key_version of records has it, in lower case where it is that of APP_IDEMPOTENCY_KEY_<version>; else wait until the last of its records has expired")
	}
	o.log.InfoContext(ctx, "idempotency key version retired", "operator", act.Operator, "reason", act.Reason, "version", version)
	return nil
}
