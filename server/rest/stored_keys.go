package rest

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"time"

	"github.com/caisson-run/caisson/internal/ledger"
)

// The keys in memory are those of this process. What other processes have answered, or earlier ones, is in the ledger.

// storedKey is what the ledger knows of a request with a key.
type storedKey struct {
	holder *ledger.Holder // nil without a ledger
	done   bool           // the reply is what the request was answered with
	reply  reply
}

// storedReply is a reply in the ledger. Body and RunID are as in [reply].
type storedReply struct {
	Status   int             `json:"status"`
	Location string          `json:"location,omitempty"`
	RunID    string          `json:"run,omitempty"`
	Body     json.RawMessage `json:"body,omitempty"`
}

// Between two looks at a request that another process answers.
const (
	firstLook = 20 * time.Millisecond
	lastLook  = time.Second
)

// takeStored takes a key in the ledger, and waits while another process answers its request.
func (x *exchange) takeStored(k *keptAnswer) (storedKey, error) {
	kept, err := x.api.host.Ledger(x.request.Context())
	if kept == nil && err == nil {
		return storedKey{}, nil
	}
	if err != nil {
		return storedKey{}, x.unstored(err)
	}
	id, _ := json.Marshal([]string{x.caller.Tenant, k.of.owner.token, k.of.owner.user, k.of.path, k.of.key}) // texts alone
	key := ledger.Key{
		Tenant: x.caller.Tenant, ID: sha256.Sum256(id), Body: k.body, Keep: x.api.options.Keys.Keep,
		Keys: x.api.options.Keys.PerTenant, KeptAnswer: int64(x.api.options.Keys.Bytes),
	}
	for wait := firstLook; ; wait = min(2*wait, lastLook) {
		taken, err := kept.TakeKey(x.request.Context(), key)
		if err != nil {
			return storedKey{}, x.unstored(err)
		}
		switch taken.State {
		case ledger.KeyTaken:
			x.request = x.request.WithContext(taken.Holder.With(x.request.Context()))
			return storedKey{holder: taken.Holder}, nil
		case ledger.KeyDiffers:
			return storedKey{}, errOtherBody
		case ledger.KeyAnswered:
			var stored storedReply
			content, err := unsealed(k.of, taken.Answer)
			if err == nil {
				err = json.Unmarshal(content, &stored)
			}
			return storedKey{done: true,
				reply: reply{status: stored.Status, location: stored.Location, runID: stored.RunID, body: stored.Body}}, err
		case ledger.KeyUnknown:
			return storedKey{}, refuse(http.StatusConflict, "unknown_outcome: the server that answered this request ended "+
				"after it had begun the call %s; GET /v1/calls has its record. Find out what the call has done before you send "+
				"the request again with a new %s", taken.CallID, keyHeader)
		}
		select {
		case <-time.After(wait):
		case <-x.request.Context().Done():
			return storedKey{}, x.request.Context().Err()
		}
	}
}

// unstored refuses a request whose key cannot be kept: it could be answered twice.
func (x *exchange) unstored(err error) error {
	if ended := x.request.Context().Err(); ended != nil {
		return ended
	}
	x.api.options.Logger.ErrorContext(x.request.Context(), "a key cannot be kept", "tenant", x.caller.Tenant, "err", err)
	return &refusal{status: http.StatusServiceUnavailable, detail: "the key of the request cannot be kept now, so the " +
		"request is not answered; try again later", header: [2]string{"Retry-After", "5"}}
}

// storeTime is the longest time that a request waits until its answer is stored.
const storeTime = 10 * time.Second

// end stores the reply to the request, or gives up the key if the request was refused. If that fails, it is tried again
// later, and this process still has the answer. A request that has had its effect, and whose answer cannot be made,
// stays as it is, and is never answered again.
func (s storedKey) end(x *exchange, k *keptAnswer, r reply, answered bool) {
	if s.holder == nil || k.failure != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.request.Context()), storeTime)
	defer cancel()
	var err error
	if answered {
		var content []byte
		if content, err = json.Marshal(storedReply{r.status, r.location, r.runID, r.body}); err == nil {
			err = s.holder.Answer(ctx, sealed(k.of, content))
		}
	} else {
		err = s.holder.Drop(ctx)
	}
	if err != nil {
		x.api.options.Logger.ErrorContext(ctx, "the answer of a key cannot be kept", "tenant", x.caller.Tenant, "err", err)
	}
}

// Answers in the ledger are encrypted, since records may be redacted. The encryption key is derived from the key of the
// request and a salt with HKDF (RFC 5869), for AES-256-GCM. The ledger has only a digest of the request's key.
const answerSalt = 16

func sealed(of requestKey, content []byte) []byte {
	salt := make([]byte, answerSalt)
	_, _ = rand.Read(salt)                               // it never fails
	return of.cipher(salt).Seal(salt, nil, content, nil) // appended, since answers may be long
}

func unsealed(of requestKey, answer []byte) ([]byte, error) {
	if len(answer) < answerSalt {
		return nil, errNoAnswer
	}
	return of.cipher(answer[:answerSalt]).Open(nil, nil, answer[answerSalt:], nil)
}

func (k requestKey) cipher(salt []byte) cipher.AEAD {
	info, _ := json.Marshal([]string{k.owner.token, k.owner.user, k.path}) // texts alone
	key, err := hkdf.Key(sha256.New, []byte(k.key), salt, string(info), 32)
	if err != nil {
		panic(err) // the length is a constant
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // likewise
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}
	return aead
}
