package main

import (
	"cmp"
	"crypto/ed25519"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/internal/agefile"
	"github.com/caisson-run/caisson/internal/ledger"
)

// checkpointKey is a key that signs records, and its file.
type checkpointKey struct {
	file string // empty without one
	key  ed25519.PrivateKey
}

// The uses of the key that signs records. Even commands that only read records may sign: each opens the ledger, which
// then stores the records of interrupted calls, and signs when it is closed.
const (
	signsRecords = "sign records with the Ed25519 key in the PEM `FILE`, as \"openssl genpkey -algorithm ed25519\" " +
		"writes it; all commands that use these records need the same key (default: a key in the state folder; with " +
		"--ledger, none)"
	signsInterrupted = "if this command finds calls that were interrupted, for example by a crash, it stores their " +
		"records, signed with the Ed25519 key in the PEM `FILE`; all commands that use the same ledger need the same key " +
		"(default: a key in the state folder; with --ledger, none)"
	checksSignatures = "checkpoints must be signed with the Ed25519 key in the PEM `FILE`; if this command finds calls " +
		"that were interrupted, for example by a crash, it stores their records, signed with this key (default: a key in " +
		"the state folder; with --ledger, any key is accepted)"
)

// checkpointFlag adds the flag for the key that signs records. use says what the command does with it.
func (o *options) checkpointFlag(command *cobra.Command, use string) {
	command.Flags().Func("checkpoint-key", use, parsedInto(&o.checkpoints, readCheckpointKey))
}

func readCheckpointKey(file string) (checkpointKey, error) {
	key, err := ledger.ReadKey(file)
	return checkpointKey{file, key}, err
}

// stateKeyFlag adds the flag for the keys that encrypt paused batches and runs. use says which.
func (o *options) stateKeyFlag(command *cobra.Command, use string) {
	command.Flags().Func("state-key", "`FILE` has keys, as age-keygen writes them: "+use,
		parsedInto(&o.stateKeys, agefile.ReadKeys))
}

// keepsKeysFromTools rejects files of keys to which a loaded tool may write.
func (h *host) keepsKeysFromTools() error {
	var state, checkpoints error
	if keys := h.options.stateKeys; keys != nil {
		state = h.keepsFromTools(keys.File, "the keys of --state-key are", "it could put its own there")
	}
	if file := h.options.checkpoints.file; file != "" {
		checkpoints = h.keepsFromTools(file, "the key of --checkpoint-key is", "it could put its own there")
	}
	return cmp.Or(state, checkpoints)
}
