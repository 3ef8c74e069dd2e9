package stream_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/hostfuncs/stream"
	"github.com/caisson-run/caisson/tool"
)

// shown records the emissions of a stream.
type shown []tool.Emission

func (s *shown) emit(e tool.Emission) error {
	*s = append(*s, e)
	return nil
}

func text(text string) tool.Emission { return tool.Emission{Type: tool.EmitText, Text: text} }

func TestWhatIsSaidIsShown(t *testing.T) {
	half := 0.5
	said := []tool.Emission{
		text("a"), {Type: tool.EmitProgress, Text: "searching", Fraction: &half}, {Type: tool.EmitJSON, Data: json.RawMessage(`{"a":1}`)},
		{Type: tool.EmitImage, Data: json.RawMessage(`"AAAA"`), MIMEType: "image/png", Partial: true},
	}
	for name, mask := range map[string]func(context.Context, []byte) ([]byte, error){
		"without secrets": nil, "with secrets": func(_ context.Context, text []byte) ([]byte, error) { return text, nil },
	} {
		var seen shown
		s := stream.Open(stream.Options{Emit: seen.emit, Mask: mask})
		for _, e := range said {
			require.NoError(t, s.Emit(t.Context(), e))
		}
		assert.Equal(t, said, []tool.Emission(seen), name)
		assert.Zero(t, s.Withheld())
		clear(said[2].Data)
		assert.JSONEq(t, `{"a":1}`, string(seen[2].Data), "%s: it is a copy", name)
		said[2].Data = json.RawMessage(`{"a":1}`)
	}
}

// TestAdmission: a call is charged for each request up to its limit, whether or not the request is valid.
func TestAdmission(t *testing.T) {
	s := stream.Open(stream.Options{Bytes: 10})
	require.NoError(t, s.Admit(6))
	err := s.Admit(5)
	var failure *hostfuncs.Error
	require.ErrorAs(t, err, &failure)
	require.ErrorIs(t, err, hostfuncs.ErrLimit)
	assert.Equal(t, int64(10), failure.Value)
	assert.EqualError(t, err, "admit: limit reached: a call may say 10 bytes before it has ended")
	require.NoError(t, s.Admit(4), "a shorter one fits")
	require.NoError(t, s.Admit(0))
	require.ErrorIs(t, s.Admit(1), hostfuncs.ErrLimit)
	for _, bytes := range []int64{0, -1} {
		s := stream.Open(stream.Options{Bytes: bytes})
		require.NoError(t, s.Admit(stream.DefaultBytes))
		require.ErrorIs(t, s.Admit(1), hostfuncs.ErrLimit)
	}
}

// TestSameAnswerWithoutAnybody: a tool cannot tell whether its stream has a receiver.
func TestSameAnswerWithoutAnybody(t *testing.T) {
	var seen shown
	for _, e := range []tool.Emission{text("a"), text(""), {Type: "other"}, {Type: tool.EmitJSON, Data: json.RawMessage("{")}} {
		with := stream.Open(stream.Options{Emit: seen.emit}).Emit(t.Context(), e)
		without := stream.Open(stream.Options{}).Emit(t.Context(), e)
		assert.Equal(t, with, without)
		if with != nil {
			assert.ErrorIs(t, with, hostfuncs.ErrInvalid)
		}
	}
	assert.Len(t, seen, 1)
}

func TestFailuresOfWhoeverShows(t *testing.T) {
	broken := errors.New("the pipe /run/secret.sock is broken")
	ended := &tool.Error{Op: "emit", Kind: tool.Cancelled, Message: "the call has ended"}
	for _, test := range []struct {
		err, kind error
		message   string
	}{
		{ended, hostfuncs.ErrUnavailable, "emit: not available: the call has ended"},
		{fmt.Errorf("late: %w", ended), hostfuncs.ErrUnavailable, "emit: not available: the call has ended"},
		{broken, hostfuncs.ErrHost, "emit: host failure: the emission could not be shown"},
		{&tool.Error{Kind: tool.Internal, Err: broken}, hostfuncs.ErrHost, "emit: host failure: the emission could not be shown"},
	} {
		err := stream.Open(stream.Options{Emit: func(tool.Emission) error { return test.err }}).Emit(t.Context(), text("a"))
		assert.EqualError(t, err, test.message)
		for _, kind := range []error{hostfuncs.ErrInvalid, hostfuncs.ErrLimit, hostfuncs.ErrUnavailable, hostfuncs.ErrHost} {
			assert.Equal(t, kind == test.kind, errors.Is(err, kind), "%v %v", err, kind)
		}
		assert.ErrorIs(t, err, test.err, "for the operator")
	}
}

const secret = "0123456789abcdef"

// masking puts a name for the secret, in plain and in base64.
func masking(_ context.Context, text []byte) ([]byte, error) {
	text = bytes.ReplaceAll(text, []byte(secret), []byte("[secret KEY]"))
	return bytes.ReplaceAll(text, []byte(base64.StdEncoding.EncodeToString([]byte(secret))), []byte("[secret KEY]")), nil
}

// TestSecretsAreTakenOut: secrets are masked in every part of an emission. An emission that cannot hold a placeholder
// is withheld.
func TestSecretsAreTakenOut(t *testing.T) {
	image, err := json.Marshal([]byte(secret))
	require.NoError(t, err)
	for _, test := range []struct {
		said tool.Emission
		want *tool.Emission // nil: withheld
	}{
		{text("it is " + secret), &tool.Emission{Type: tool.EmitText, Text: "it is [secret KEY]"}},
		{tool.Emission{Type: tool.EmitProgress, Text: secret}, &tool.Emission{Type: tool.EmitProgress, Text: "[secret KEY]"}},
		{tool.Emission{Type: tool.EmitJSON, Data: json.RawMessage(`["` + secret + `"]`)}, &tool.Emission{Type: tool.EmitJSON, Data: json.RawMessage(`["[secret KEY]"]`)}},
		{tool.Emission{Type: tool.EmitJSON, Data: json.RawMessage(`"` + secret + `"`)}, &tool.Emission{Type: tool.EmitJSON, Data: json.RawMessage(`"[secret KEY]"`)}},
		{tool.Emission{Type: tool.EmitLink, Data: json.RawMessage(`"https://` + secret + `.example/"`)}, nil},
		{tool.Emission{Type: tool.EmitImage, Data: image, MIMEType: "image/png"}, nil},
		{tool.Emission{Type: tool.EmitImage, Data: json.RawMessage(`"AAAA"`), MIMEType: "image/" + secret}, nil},
	} {
		var seen shown
		s := stream.Open(stream.Options{Emit: seen.emit, Mask: masking})
		require.NoError(t, s.Emit(t.Context(), test.said), "the guest is told nothing of it")
		if test.want == nil {
			assert.Empty(t, seen)
			assert.Equal(t, 1, s.Withheld())
			continue
		}
		assert.Equal(t, shown{*test.want}, seen)
		assert.Zero(t, s.Withheld())
	}
	// The control: without a mask, all of it is there to see.
	var seen shown
	require.NoError(t, stream.Open(stream.Options{Emit: seen.emit}).Emit(t.Context(), text(secret)))
	assert.Equal(t, secret, seen[0].Text)
}

// TestFractionsTellNoSecret: a secret of digits is not sent as a fraction, however small. The controls are a fraction
// with other digits, and a stream without a mask.
func TestFractionsTellNoSecret(t *testing.T) {
	const card = "4929123456781234"
	hide := func(_ context.Context, text []byte) ([]byte, error) {
		return bytes.ReplaceAll(text, []byte(card), []byte("[secret CARD]")), nil
	}
	for _, told := range []float64{0.4929123456781234, 0.0000000004929123456781234} {
		var seen shown
		s := stream.Open(stream.Options{Emit: seen.emit, Mask: hide})
		require.NoError(t, s.Emit(t.Context(), tool.Emission{Type: tool.EmitProgress, Text: "paying", Fraction: &told}))
		assert.Equal(t, shown{{Type: tool.EmitProgress, Text: "paying"}}, seen)
		require.NoError(t, s.Emit(t.Context(), tool.Emission{Type: tool.EmitProgress, Fraction: &told}))
		assert.Len(t, seen, 1, "there was nothing else in it")
		assert.Equal(t, 1, s.Withheld())
		assert.NotZero(t, told, "what the guest said is not changed")

		var plain shown
		require.NoError(t, stream.Open(stream.Options{Emit: plain.emit}).Emit(t.Context(), tool.Emission{Type: tool.EmitProgress, Fraction: &told}))
		assert.Equal(t, told, *plain[0].Fraction)
	}
	var seen shown
	half := 0.5
	require.NoError(t, stream.Open(stream.Options{Emit: seen.emit, Mask: hide}).Emit(t.Context(), tool.Emission{Type: tool.EmitProgress, Fraction: &half}))
	assert.Equal(t, shown{{Type: tool.EmitProgress, Fraction: &half}}, seen)
}

// TestEndWhileSecretsAreSought: nothing is shown that was not looked through.
func TestEndWhileSecretsAreSought(t *testing.T) {
	var seen shown
	ctx, cancel := context.WithCancel(t.Context())
	s := stream.Open(stream.Options{Emit: seen.emit, Mask: func(ctx context.Context, text []byte) ([]byte, error) {
		cancel()
		return text, ctx.Err()
	}})
	require.ErrorIs(t, s.Emit(ctx, text("a")), context.Canceled)
	assert.Empty(t, seen)
}
