package ledger

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/caisson-run/caisson/internal/ledger/internal/database"
)

// Claim claims the state of a paused batch, so that one process resumes it, once. It returns false if the state was
// claimed before. The claim is durable, and lasts until expires. An error means that the state was not claimed, as far
// as is known.
func (l *Ledger) Claim(ctx context.Context, key string, expires time.Time) (ours bool, err error) {
	digest := sha256.Sum256([]byte(key))
	err = l.database.Update(ctx, func(tx *database.Tx) error {
		if _, err := tx.Exec(ctx, "delete from claims where expires < ?", time.Now().UnixMilli()); err != nil {
			return err
		}
		added, err := tx.Exec(ctx, "insert into claims (key, expires) values (?, ?) on conflict do nothing", digest[:],
			expires.UnixMilli())
		ours = added == 1
		return err
	})
	return ours && err == nil, l.failure("claim", err)
}
