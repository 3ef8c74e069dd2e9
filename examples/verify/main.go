// Command verify checks the evidence that "caisson records export --format evidence" writes, with Go's standard library
// alone:
//
//	caisson records export --format evidence > evidence.jsonl
//	go run ./examples/verify -key 5f3c… < evidence.jsonl
//
// It shares no code with Caisson. docs/records.md describes the lines and what is hashed.
package main

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
)

func main() {
	key := flag.String("key", "", "the public key of the checkpoints, in hexadecimal; without it, each key is accepted")
	flag.Parse()
	v := verifier{key: *key}
	err := v.read(os.Stdin)
	for _, fault := range v.faults {
		fmt.Println(fault)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "verify:", err)
		os.Exit(2)
	}
	fmt.Printf("entries: %d (removed: %d), checkpoints: %d, faults: %d\n", v.entries, v.removed, v.checkpoints,
		len(v.faults))
	if len(v.faults) > 0 {
		os.Exit(1)
	}
}

// line is one line of the evidence.
type line struct {
	Kind, Chain, Seq, Hash, At, Call, Digest, Salt, Key, Signature string

	Content *string
}

// verifier has what was read so far.
type verifier struct {
	key                           string
	entries, removed, checkpoints int
	faults                        []string

	chain  string
	seq    int64             // of the last entry of the chain
	hash   string            // of it
	hashes map[string]string // of the chain's entries, by their numbers
}

// fault notes what is wrong with a line.
func (v *verifier) fault(l line, problem string) {
	name := "chain " + l.Chain + ", " + l.Kind + " " + l.Seq
	if l.Call != "" {
		name += " (call " + l.Call + ")"
	}
	v.faults = append(v.faults, name+": "+problem)
}

// read checks all lines.
func (v *verifier) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for n := 1; ; n++ {
		text, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(text)) > 0 {
			var l line
			if err := json.Unmarshal(text, &l); err != nil {
				return fmt.Errorf("line %d: %w", n, err)
			}
			if err := v.take(l); err != nil {
				return fmt.Errorf("line %d: %w", n, err)
			}
		}
		if err == io.EOF {
			if v.chain != "" {
				v.fault(line{Kind: "chain", Chain: v.chain, Seq: strconv.FormatInt(v.seq, 10)}, "it has no end")
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// take checks one line.
func (v *verifier) take(l line) error {
	seq, err := strconv.ParseInt(l.Seq, 10, 64)
	if err != nil {
		return err
	}
	if l.Kind != "chain" && l.Chain != v.chain {
		return fmt.Errorf("it belongs to chain %q, in chain %q", l.Chain, v.chain)
	}
	switch l.Kind {
	case "chain":
		if v.chain != "" {
			v.fault(line{Kind: "chain", Chain: v.chain, Seq: strconv.FormatInt(v.seq, 10)}, "it has no end")
		}
		v.chain, v.seq, v.hash, v.hashes = l.Chain, seq, l.Hash, map[string]string{l.Seq: l.Hash}
	case "entry":
		v.entry(l, seq)
	case "checkpoint":
		v.checkpoint(l, seq)
	case "end":
		if seq != v.seq || l.Hash != v.hash {
			v.fault(l, fmt.Sprintf("the last entry is %d", v.seq))
		}
		v.chain = ""
	default:
		return fmt.Errorf("unknown kind %q", l.Kind)
	}
	return nil
}

// entry checks that an entry follows from the one before, and that its content is what was hashed.
func (v *verifier) entry(l line, seq int64) {
	v.entries++
	text := fmt.Sprintf(`{"at":"%s","call":"%s","chain":"%s","digest":"%s","prev":"%s","seq":"%s"}`, l.At, l.Call, l.Chain,
		l.Digest, v.hash, l.Seq)
	sum := sha256.Sum256([]byte(text))
	switch {
	case seq != v.seq+1:
		v.fault(l, fmt.Sprintf("entries %d to %d before it were removed", v.seq+1, seq-1))
	case hex.EncodeToString(sum[:]) != l.Hash:
		v.fault(l, "it does not follow from the entry before: it, or its place, was changed")
	}
	if l.Content == nil {
		v.removed++
	} else {
		salt, _ := hex.DecodeString(l.Salt) // one that is wrong gives another digest
		sum := sha256.Sum256(append(salt, *l.Content...))
		if hex.EncodeToString(sum[:]) != l.Digest {
			v.fault(l, "its content was changed")
		}
	}
	v.seq, v.hash = seq, l.Hash
	v.hashes[l.Seq] = l.Hash
}

// checkpoint checks the signature of a checkpoint, and that the chain has what it signs.
func (v *verifier) checkpoint(l line, seq int64) {
	v.checkpoints++
	key, err := hex.DecodeString(l.Key)
	signature, err2 := hex.DecodeString(l.Signature)
	text := fmt.Sprintf(`{"at":"%s","chain":"%s","hash":"%s","seq":"%s"}`, l.At, l.Chain, l.Hash, l.Seq)
	switch {
	case err != nil || err2 != nil || len(key) != ed25519.PublicKeySize || !ed25519.Verify(key, []byte(text), signature):
		v.fault(l, "the signature is wrong")
	case v.key != "" && v.key != l.Key:
		v.fault(l, "it is signed with another key, "+l.Key)
	case seq > v.seq:
		v.fault(l, "it signs an entry that is not there: the newest were removed")
	case v.hashes[l.Seq] != l.Hash:
		v.fault(l, "it signs another hash")
	}
}
