package ledger

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"time"

	"github.com/caisson-run/caisson/internal/folder"
	"github.com/caisson-run/caisson/internal/hostfile"
	"github.com/caisson-run/caisson/internal/ledger/internal/database"
)

// Each entry is a link of its writer's chain. The hash of a link covers the hash of the link before, so whoever knows
// a later hash can prove that an earlier entry is what it was. What is hashed is not the content but its digest with a
// random salt: when content and salt are removed, the chain still holds, and says nothing of them.

const (
	saltBytes = 16
	hashBytes = sha256.Size
)

// link is one place in a chain. The zero hash stands before the first.
type link struct {
	chain, seq int64
	id         []byte // of the call
	at         int64  // when it ended, in milliseconds
	digest     []byte
	hash       []byte
}

// next returns the link of a call after this one.
func (l link) next(id []byte, ended time.Time, digest []byte) link {
	own := link{chain: l.chain, seq: l.seq + 1, id: id, at: ended.UnixMilli(), digest: digest}
	own.hash = own.hashAfter(l.hash)
	return own
}

// text is what is hashed: JSON in canonical form (RFC 8785), so that a program in any language can compute it. All its
// members are texts, since programs read long numbers differently.
func (l link) text(before []byte) []byte {
	return fmt.Appendf(nil, `{"at":"%d","call":"%s","chain":"%d","digest":"%x","prev":"%x","seq":"%d"}`, l.at,
		hyphenated(l.id), l.chain, l.digest, before, l.seq)
}

func (l link) hashAfter(before []byte) []byte {
	sum := sha256.Sum256(l.text(before))
	return sum[:]
}

// digestOf returns what a link keeps of a content.
func digestOf(salt, content []byte) []byte {
	h := sha256.New()
	h.Write(salt)
	h.Write(content)
	return h.Sum(nil)
}

// takeChain returns a chain for this writer. Processes on one PostgreSQL take different ones as far as there are, so
// that they do not wait for each other. SQLite, which has one writer at a time, has one chain.
func (l *Ledger) takeChain(ctx context.Context) (chain int64, err error) {
	err = l.database.Update(ctx, func(tx *database.Tx) error {
		for chain = 1; ; chain++ {
			_, err := tx.Exec(ctx, "insert into chains (id, seq, hash, base_seq, base_hash) values (?, 0, ?, 0, ?) "+
				"on conflict do nothing", chain, make([]byte, hashBytes), make([]byte, hashBytes))
			if err != nil {
				return err
			}
			if free, err := l.database.Reserve(ctx, chain); free || err != nil {
				return err
			}
		}
	})
	return chain, err
}

// lockChain returns the last link, after which no other process can add one before the transaction ends.
func (l *Ledger) lockChain(ctx context.Context, tx *database.Tx) (link, error) {
	last := link{chain: l.chain}
	err := tx.Row(ctx, "select seq, hash from chains where id = ?"+l.database.Only("", " for update"), []any{l.chain},
		&last.seq, &last.hash)
	return last, err
}

// moveChain makes a link the last one.
func (l *Ledger) moveChain(ctx context.Context, tx *database.Tx, last link) error {
	_, err := tx.Exec(ctx, "update chains set seq = ?, hash = ? where id = ?", last.seq, last.hash, l.chain)
	return err
}

// keyFile is the private key in the folder of a ledger (PKCS #8, PEM).
const keyFile = "ledger.key"

// loadKey finds or makes the key that signs checkpoints.
func (l *Ledger) loadKey() (err error) {
	if l.key = l.options.Key; l.key != nil || database.IsURL(l.options.Location) {
		return nil
	}
	root, err := folder.Open(l.options.Location)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	content, err := folder.Read(root, keyFile, 4<<10)
	if errors.Is(err, fs.ErrNotExist) {
		if content, err = newKey(); err == nil {
			err = folder.Create(root, keyFile, content)
		}
		if errors.Is(err, fs.ErrExist) { // another process made one in the meantime
			content, err = folder.Read(root, keyFile, 4<<10)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", keyFile, err)
	}
	if l.key, err = ParseKey(content); err != nil {
		return fmt.Errorf("%s: %w", keyFile, err)
	}
	return nil
}

func newKey() ([]byte, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
}

// ReadKey reads a key for [Options] from a file, which only its owner may be able to change.
func ReadKey(file string) (ed25519.PrivateKey, error) {
	content, _, err := hostfile.ReadPrivate(file, 4<<10)
	if err != nil {
		return nil, err
	}
	key, err := ParseKey(content)
	if err != nil {
		return nil, fmt.Errorf("%s is %w", file, err)
	}
	return key, nil
}

// ParseKey reads an Ed25519 key for [Options] from PEM with PKCS #8, as "openssl genpkey -algorithm ed25519" writes it.
func ParseKey(content []byte) (ed25519.PrivateKey, error) {
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, fmt.Errorf("%w: it is not PEM", ErrKey)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%w: it is not of Ed25519", ErrKey)
	}
	return key, nil
}

// checkpointText is what is signed: canonical JSON, like that of a link.
func checkpointText(chain, seq int64, hash []byte, at int64) []byte {
	return fmt.Appendf(nil, `{"at":"%d","chain":"%d","hash":"%x","seq":"%d"}`, at, chain, hash, seq)
}

// checkpoint signs the last link, if it is not signed yet.
func (l *Ledger) checkpoint(ctx context.Context) error {
	l.added.unsigned.Store(0)
	if l.key == nil {
		return nil
	}
	return l.database.Update(ctx, func(tx *database.Tx) error {
		last, err := l.lockChain(ctx, tx)
		if err != nil || last.seq == 0 {
			return err
		}
		at := time.Now().UnixMilli()
		// One of each hour is enough: those before are proved by it.
		if _, err := tx.Exec(ctx, "delete from checkpoints where chain = ? and seq < ? and at / 3600000 = ?", last.chain,
			last.seq, at/3600000); err != nil {
			return err
		}
		public := l.key.Public().(ed25519.PublicKey)
		_, err = tx.Exec(ctx, "insert into checkpoints (chain, seq, hash, at, key, signature) values (?, ?, ?, ?, ?, ?) "+
			"on conflict do nothing", last.chain, last.seq, last.hash, at, []byte(public),
			ed25519.Sign(l.key, checkpointText(last.chain, last.seq, last.hash, at)))
		return err
	})
}

// Fault is something in a ledger that is not as it was written.
type Fault struct {
	Chain   int64  `json:"chain"`
	Seq     int64  `json:"seq"`
	CallID  string `json:"call_id"` // empty if it is not known
	Problem string `json:"problem"`
}

// String returns where the fault is, and what it is.
func (f Fault) String() string {
	text := "chain " + strconv.FormatInt(f.Chain, 10) + ", entry " + strconv.FormatInt(f.Seq, 10)
	if f.CallID != "" {
		text += " (call " + f.CallID + ")"
	}
	return text + ": " + f.Problem
}

// Verification is what [Ledger.Verify] has found.
type Verification struct {
	Chains      int64 `json:"chains"`
	Entries     int64 `json:"entries"`
	Removed     int64 `json:"removed"` // of the entries: those whose records are gone
	Checkpoints int64 `json:"checkpoints"`
	// Key is the public key of this ledger in hexadecimal, or empty if it signs nothing.
	Key string `json:"key,omitempty"`
	// Faults are the first 100.
	Faults []Fault `json:"faults"`
}

const maxFaults = 100

func (v *Verification) fault(of link, problem string) {
	if len(v.Faults) < maxFaults {
		id := ""
		if len(of.id) == 16 {
			id = hyphenated(of.id)
		}
		v.Faults = append(v.Faults, Fault{of.chain, of.seq, id, problem})
	}
}

// Verify checks every entry against its chain, and every checkpoint against its link and the public key of this ledger.
// The ledger may be written meanwhile. It returns what it has found; the error says that the ledger cannot be read.
func (l *Ledger) Verify(ctx context.Context) (v Verification, err error) {
	if l.key != nil {
		v.Key = hex.EncodeToString(l.key.Public().(ed25519.PublicKey))
	}
	err = l.viewAll(ctx, func(tx *database.Tx) error {
		chains, err := chainsOf(ctx, tx)
		if err != nil {
			return err
		}
		for _, c := range chains {
			v.Chains++
			signed, err := l.checkpointsOf(ctx, tx, c, &v)
			if err != nil {
				return err
			}
			if err := verifyChain(ctx, tx, c, signed, &v); err != nil {
				return err
			}
		}
		return nil
	})
	return v, l.failure("verify", err)
}

const (
	selectEntries     = "select seq, call_id, at, digest, hash, salt, content from calls where chain = ? order by seq"
	selectCheckpoints = "select seq, hash, at, key, signature from checkpoints where chain = ? order by seq"
)

// chainEnds is the first and the last hash of a chain as the table has them.
type chainEnds struct{ base, last link }

func chainsOf(ctx context.Context, tx *database.Tx) (found []chainEnds, err error) {
	err = tx.Rows(ctx, "select id, seq, hash, base_seq, base_hash from chains order by id", nil,
		func(scan func(into ...any) error) error {
			var c chainEnds
			err := scan(&c.last.chain, &c.last.seq, &c.last.hash, &c.base.seq, &c.base.hash)
			c.base.chain = c.last.chain
			found = append(found, c)
			return err
		})
	return found, err
}

// checkpointsOf returns the hashes that the checkpoints of a chain sign, by the number of the link.
func (l *Ledger) checkpointsOf(
	ctx context.Context, tx *database.Tx, c chainEnds, v *Verification,
) (signed map[int64][]byte, err error) {
	signed = map[int64][]byte{}
	err = tx.Rows(ctx, selectCheckpoints, []any{c.last.chain},
		func(scan func(into ...any) error) error {
			at := link{chain: c.last.chain}
			var key, signature []byte
			if err := scan(&at.seq, &at.hash, &at.at, &key, &signature); err != nil {
				return err
			}
			v.Checkpoints++
			own := l.key == nil || bytes.Equal(key, l.key.Public().(ed25519.PublicKey))
			switch {
			case len(key) != ed25519.PublicKeySize ||
				!ed25519.Verify(key, checkpointText(at.chain, at.seq, at.hash, at.at), signature):
				v.fault(at, "the signature of the checkpoint is wrong")
			case !own:
				v.fault(at, "the checkpoint is signed with another key, "+hex.EncodeToString(key))
			case at.seq > c.last.seq:
				v.fault(at, "the checkpoint signs an entry that is not there: the newest were removed")
			case at.seq == c.base.seq && !bytes.Equal(at.hash, c.base.hash):
				v.fault(at, "the checkpoint signs another hash")
			default:
				signed[at.seq] = at.hash
			}
			return nil
		})
	return signed, err
}

// verifyChain checks the links of a chain.
func verifyChain(ctx context.Context, tx *database.Tx, c chainEnds, signed map[int64][]byte, v *Verification) error {
	before := c.base
	check := func(scan func(into ...any) error) error {
		at := link{chain: c.last.chain}
		var salt []byte
		var content *string
		if err := scan(&at.seq, &at.id, &at.at, &at.digest, &at.hash, &salt, &content); err != nil {
			return err
		}
		if v.Entries++; content == nil {
			v.Removed++
		}
		switch {
		case at.seq != before.seq+1:
			v.fault(at, fmt.Sprintf("entries %d to %d before it were removed", before.seq+1, at.seq-1))
		case !bytes.Equal(at.hash, at.hashAfter(before.hash)):
			v.fault(at, "its link does not follow from the one before: it, or its place, was changed")
		case content != nil && !bytes.Equal(at.digest, digestOf(salt, []byte(*content))):
			v.fault(at, "its content was changed")
		case signed[at.seq] != nil && !bytes.Equal(at.hash, signed[at.seq]):
			v.fault(at, "a checkpoint signs another hash")
		}
		before = at
		return nil
	}
	err := tx.Rows(ctx, selectEntries, []any{c.last.chain}, check)
	if err == nil && (before.seq != c.last.seq || !bytes.Equal(before.hash, c.last.hash)) {
		v.fault(link{chain: c.last.chain, seq: before.seq + 1}, fmt.Sprintf(
			"the chain should end with entry %d, and ends with %d", c.last.seq, before.seq))
	}
	return err
}
