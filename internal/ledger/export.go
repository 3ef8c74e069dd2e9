package ledger

import (
	"context"
	"encoding/hex"
	"strconv"

	"github.com/caisson-run/caisson/internal/ledger/internal/database"
)

// Line is one line of the evidence that [Ledger.Evidence] gives. All values are texts, and bytes are hexadecimal.
// docs/records.md says how to verify them.
type Line struct {
	// Kind is "chain", with which a chain begins; "entry"; "checkpoint"; or "end", with the chain's last entry.
	Kind  string `json:"kind"`
	Chain string `json:"chain"`
	// Seq and Hash are those of the entry, of the one that is signed, of the last one, or of the last that was removed
	// before the chain's first.
	Seq  string `json:"seq"`
	Hash string `json:"hash"`
	// At is when the call ended, or when the checkpoint was signed, in milliseconds since 1970.
	At     string `json:"at,omitempty"`
	Call   string `json:"call,omitempty"` // of an entry: the id
	Digest string `json:"digest,omitempty"`
	// Salt and Content are absent if the record was removed.
	Salt    string  `json:"salt,omitempty"`
	Content *string `json:"content,omitempty"`
	// Key and Signature are those of a checkpoint (Ed25519).
	Key       string `json:"key,omitempty"`
	Signature string `json:"signature,omitempty"`
}

// Evidence calls each for the lines with which somebody else can verify all records.
func (l *Ledger) Evidence(ctx context.Context, each func(Line) error) error {
	return l.failure("export", l.viewAll(ctx, func(tx *database.Tx) error {
		chains, err := chainsOf(ctx, tx)
		if err != nil {
			return err
		}
		for _, c := range chains {
			if err := each(lineOf("chain", c.base)); err != nil {
				return err
			}
			if err := entryLines(ctx, tx, c.base.chain, each); err != nil {
				return err
			}
			if err := checkpointLines(ctx, tx, c.base.chain, each); err != nil {
				return err
			}
			if err := each(lineOf("end", c.last)); err != nil {
				return err
			}
		}
		return nil
	}))
}

// viewAll reads one state of all records, however long that takes: PostgreSQL ends other statements after a minute, and
// counts the time for which the reader of an export waits.
func (l *Ledger) viewAll(ctx context.Context, work func(tx *database.Tx) error) error {
	return l.database.View(ctx, func(tx *database.Tx) error {
		if patient := l.database.Only("", "set local statement_timeout = 0"); patient != "" {
			if _, err := tx.Exec(ctx, patient); err != nil {
				return err
			}
		}
		return work(tx)
	})
}

func lineOf(kind string, at link) Line {
	return Line{
		Kind: kind, Chain: strconv.FormatInt(at.chain, 10), Seq: strconv.FormatInt(at.seq, 10),
		Hash: hex.EncodeToString(at.hash),
	}
}

func entryLines(ctx context.Context, tx *database.Tx, chain int64, each func(Line) error) error {
	return tx.Rows(ctx, selectEntries, []any{chain}, func(scan func(into ...any) error) error {
		at := link{chain: chain}
		var salt []byte
		var content *string
		if err := scan(&at.seq, &at.id, &at.at, &at.digest, &at.hash, &salt, &content); err != nil {
			return err
		}
		line := lineOf("entry", at)
		line.Call, line.Digest = hyphenated(at.id), hex.EncodeToString(at.digest)
		line.At, line.Salt, line.Content = strconv.FormatInt(at.at, 10), hex.EncodeToString(salt), content
		return each(line)
	})
}

func checkpointLines(ctx context.Context, tx *database.Tx, chain int64, each func(Line) error) error {
	return tx.Rows(ctx, selectCheckpoints, []any{chain}, func(scan func(into ...any) error) error {
		at := link{chain: chain}
		var key, signature []byte
		if err := scan(&at.seq, &at.hash, &at.at, &key, &signature); err != nil {
			return err
		}
		line := lineOf("checkpoint", at)
		line.At = strconv.FormatInt(at.at, 10)
		line.Key, line.Signature = hex.EncodeToString(key), hex.EncodeToString(signature)
		return each(line)
	})
}
