package runtime

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/internal/replay"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/runtime/internal/tape"
	"github.com/caisson-run/caisson/tool"
)

// recording is the part of a run that records its inputs or replays them.
type recording struct {
	image    *replay.Image  // that the run has resumed; nil for none
	recorder *tape.Recorder // nil to record nothing
	replayed *replay.Inputs // nil for a call that is not a replay
	player   *tape.Player   // of the same
	refusal  error          // why the replay could not begin; may be nil
}

// The guest's outputs, as tapes number them.
const (
	stdoutTape = iota
	stderrTape
)

// newTape returns what records or replays a run that is about to begin, or nil.
func (r *run) newTape() engine.Tape {
	a := &r.answer
	switch {
	case r.player != nil:
		r.player.Outputs = []io.Writer{stdoutTape: &a.Stdout, stderrTape: &a.Stderr}
		r.player.Charge = func(ctx context.Context, fuel int64) { engine.BudgetOf(ctx).Charge(fuel) }
		return r.player
	case r.tool.records:
		recorder := tape.NewRecorder(r.tool.permit.Secrets.Mask)
		a.Stdout.OnWrite = func(data []byte) { recorder.Output(stdoutTape, data) }
		a.Stderr.OnWrite = func(data []byte) { recorder.Output(stderrTape, data) }
		r.recorder, r.image = recorder, nil
		return recorder
	}
	return nil
}

// inputs returns the recorded inputs of a call that has ended with this kind of failure, or nil.
func (r *run) inputs(ctx context.Context, kind tool.Kind) json.RawMessage {
	if r.recorder == nil {
		return nil
	}
	text, err := r.encodeInputs(ctx, kind)
	if err != nil {
		r.tool.runtime.logger.ErrorContext(ctx, "inputs not recorded", "call_id", r.invocation.CallID, "tool",
			r.tool.manifest.Name, "err", err)
	}
	return text
}

func (r *run) encodeInputs(ctx context.Context, kind tool.Kind) (json.RawMessage, error) {
	steps, count, why := r.recorder.Result()
	in := replay.Inputs{
		CallersFuel: r.answer.CallersFuel, Image: r.image, Denials: r.answer.Denials, Unread: r.answer.Unread, Steps: count,
		NotReplayable: why, Limits: replay.Limits{
			Memory: int64(r.tool.limits.Memory), Output: int64(r.tool.limits.Output), Stderr: int64(r.tool.limits.Stderr),
			Fuel: r.answer.Fuel,
		},
	}
	switch kind {
	case tool.Deadline:
		in.NotReplayable = "its deadline ended it, which is a matter of time and not of fuel"
	case tool.Cancelled:
		in.NotReplayable = "it was cancelled"
	case tool.Internal:
		in.NotReplayable = "the host failed"
	}
	if err := r.tool.identify(ctx, &in); err != nil {
		return nil, err
	}
	if in.NotReplayable == "" {
		text, err := in.Encode(steps)
		if err != nil {
			return nil, err
		}
		if !r.holdsSecret(ctx, steps) && !r.holdsSecret(ctx, text) {
			return text, nil
		}
		in.NotReplayable = "its inputs hold one of the tool's secrets, so they were not kept"
	}
	in.Denials, in.Image = nil, nil
	return in.Encode(nil)
}

// holdsSecret reports whether a text has one of the tool's secrets in it, or there was no time to see that.
func (r *run) holdsSecret(ctx context.Context, text []byte) bool {
	secrets := r.tool.permit.Secrets
	if secrets.Longest() == 0 {
		return false
	}
	masked, err := secrets.MaskFirst(ctx, text, len(text))
	return err != nil || !bytes.Equal(masked, text)
}

// identify adds the digests of the tool.
func (t *Tool) identify(ctx context.Context, in *replay.Inputs) error {
	module, err := t.moduleDigest(ctx)
	if err != nil {
		return err
	}
	manifest, err := t.permit.ManifestDigest()
	in.Module, in.Manifest = hex.EncodeToString(module[:]), hex.EncodeToString(manifest[:])
	return err
}

// imageOf describes the start of a program that a call has resumed.
func (t *Tool) imageOf(made *launch, fuel int64) *replay.Image {
	image := &replay.Image{Seed: made.seed[:], Clock: made.began.UnixNano(), Fuel: fuel, Environment: t.permit.Environment}
	for _, mount := range t.permit.Mounts {
		if mount.Tree == nil {
			image.Mounts = append(image.Mounts, replay.Mount{Path: mount.Guest.String(), Access: string(mount.Access)})
		}
	}
	return image
}

// minReplayTime is the least time that a replay has. It uses none for what the host did.
const minReplayTime = time.Minute

func (r *run) timeout() time.Duration {
	if r.replayed != nil {
		return max(r.tool.limits.Timeout, minReplayTime)
	}
	return r.tool.limits.Timeout
}

// replay runs a recorded call again. The error is nil if the guest did the same as in the record, even if it failed. It
// is a [*replay.Refusal] if the call cannot be replayed, and a [*replay.Divergence] if the guest did something else.
func (t *Tool) replay(ctx context.Context, invocation tool.Invocation) (_ tool.Outcome, err error) {
	in, steps, err := replay.Decode(invocation.Replay)
	if err != nil {
		return tool.Outcome{}, err
	}
	if err := t.checkReplay(ctx, in); err != nil {
		return tool.Outcome{}, err
	}
	player, err := tape.NewPlayer(steps)
	if err != nil {
		return tool.Outcome{}, &replay.Refusal{Err: err}
	}
	digest, err := t.moduleDigest(ctx)
	if err == nil {
		t, err = t.forReplay(digest, in)
	}
	if err != nil {
		return tool.Outcome{}, &replay.Refusal{Err: err}
	}
	defer func() { err = errors.Join(err, t.Close(ctx)) }()
	module, err := t.prepareModule(ctx)
	if err != nil {
		return tool.Outcome{}, err
	}
	r := t.newRun(tool.Invocation{CallID: invocation.CallID, Tool: invocation.Tool})
	r.replayed, r.player = &in, player
	inside, err := r.enter(ctx)
	if err != nil {
		return tool.Outcome{}, err
	}
	defer r.leave()
	if err := r.prepare(nil, isPlugin(t.manifest, module.Description())); err != nil {
		return tool.Outcome{}, err
	}
	outcome, err := r.execute(inside, module)
	if r.refusal != nil {
		return outcome, &replay.Refusal{Err: r.refusal}
	}
	kind := outcome.Result.Kind
	if kind == tool.Deadline || kind == tool.Cancelled {
		return outcome, err
	}
	if failure := player.Close(); failure != nil {
		if _, differs := errors.AsType[*replay.Divergence](failure); !differs {
			failure = &replay.Refusal{Err: failure}
		}
		return outcome, failure
	}
	if kind == tool.Internal {
		return outcome, err
	}
	return outcome, nil
}

// checkReplay refuses a call of another module or manifest.
func (t *Tool) checkReplay(ctx context.Context, in replay.Inputs) error {
	if t.isClients() {
		return replay.Refuse("the client runs the tool")
	}
	var now replay.Inputs
	if err := t.identify(ctx, &now); err != nil {
		return &replay.Refusal{Err: err}
	}
	switch {
	case now.Module != in.Module:
		return replay.Refuse("the module of its tool was %s, and is %s now", in.Module, now.Module)
	case now.Manifest != in.Manifest:
		return replay.Refuse("the manifest of its tool has changed")
	}
	return nil
}

// forReplay returns the tool with the limits of the call and without any permission, except for what a starting program
// sees of them. It must be closed.
func (t *Tool) forReplay(digest engine.Digest, in replay.Inputs) (*Tool, error) {
	if in.Limits.Memory > int64(manifests.MaxMemory) {
		return nil, errTooMuchMemory
	}
	l := t.limits
	l.Memory, l.Output, l.Stderr = manifests.Bytes(in.Limits.Memory), manifests.Bytes(in.Limits.Output),
		manifests.Bytes(in.Limits.Stderr)
	with := content{digest: digest, script: t.script}
	for _, mount := range t.permit.Mounts {
		if mount.Tree != nil {
			with.files = append(with.files, mount)
		}
	}
	alone, err := t.runtime.newTool(t.manifest, manifests.Grants{}, with, l)
	if err != nil || in.Image == nil {
		return alone, err
	}
	mounts := with.files
	for _, m := range in.Image.Mounts {
		mounts = append(mounts, files.Mount{Guest: permission.NewGuestPath(m.Path), Access: manifests.Access(m.Access),
			Host: permission.NewHostTemplate("/")}) // which an outline does not open
	}
	alone.permit.Environment = in.Image.Environment
	if alone.outline, err = files.NewOutline(mounts, t.fileLimits()); err != nil {
		return nil, errors.Join(err, alone.permit.Close())
	}
	return alone, nil
}

// runAgain runs the guest of a replay, as the recorded call ran it.
func (r *run) runAgain(ctx context.Context, module *engine.Module, run engine.Run) (engine.Usage, error) {
	t, image := r.tool, r.replayed.Image
	if image == nil {
		run.Initialize = t.initialize(module)
		return module.Run(ctx, run)
	}
	l, reason := t.launchWith(module, [32]byte(image.Seed), time.Unix(0, image.Clock))
	if l == nil {
		r.refusal = errors.New("its program cannot be started: " + reason)
		return engine.Usage{}, r.refusal
	}
	started, err := l.begin(ctx, module)
	if err != nil {
		r.refusal = err
		return engine.Usage{}, err
	}
	defer t.drop(ctx, started)
	run.Started = image.Fuel
	return started.Run(ctx, run)
}
