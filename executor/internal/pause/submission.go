package pause

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caisson-run/caisson/tool"
)

// Why a batch cannot be resumed. Package executor exports and describes them.
var (
	ErrInvalidState = errors.New("invalid state")
	ErrWrongSession = errors.New("the batch belongs to another session")
	ErrWrongAnswers = errors.New("the answers are not those that the batch waits for")
	ErrNotApproved  = errors.New("the approval is for something else")
	ErrExpired      = errors.New("the paused batch has expired")
)

// wrongAnswers is a kind of [ErrWrongAnswers].
type wrongAnswers string

const (
	ErrUnknownCall   wrongAnswers = "no waiting call has this id"
	ErrMissingAnswer wrongAnswers = "a waiting call has no answer"
	ErrDoubledAnswer wrongAnswers = "a call has more than one answer"
	ErrWrongAnswer   wrongAnswers = "the answer is of the wrong type"
)

func (w wrongAnswers) Error() string { return string(w) }

func (w wrongAnswers) Is(target error) bool { return target == ErrWrongAnswers }

// Answer is the answer to an action: either an output or an approval.
type Answer struct {
	Output   *tool.Result
	Approval *tool.Approval
}

// Submission holds the answers that resume a batch, and the terms of the session that does.
type Submission struct {
	Session   string        // the digest of the session that resumes the batch
	Longest   time.Duration // how long a batch may wait here
	Outputs   []tool.Answer
	Approvals []tool.Approval
}

// ClocksDiffer is the maximum time by which the clock of another process may be ahead.
const ClocksDiffer = 5 * time.Minute

// Match checks that a batch can resume with the submission, and assigns the answers by call id. The error has all
// mistakes.
func (b *Batch) Match(s Submission) (map[string]Answer, error) {
	var m mistakes
	now := time.Now()
	switch {
	case !now.Before(b.Expires):
		m.add(ErrExpired, "%s", b.Expires.Format(time.RFC3339))
	case b.Expires.After(now.Add(s.Longest + ClocksDiffer)):
		m.add(ErrInvalidState, "it expires at %s, later than batches may wait here", b.Expires.Format(time.RFC3339))
	}
	if b.Session != s.Session {
		m.add(ErrWrongSession, "the batch began with another tenant or other context values")
	}
	given := m.match(b.Pending(), s.Outputs, s.Approvals)
	if len(m) > 0 {
		return nil, m
	}
	return given, nil
}

// match assigns the answers to actions by call id. If there are no mistakes, each action has one.
func (m *mistakes) match(pending []tool.Action, outputs []tool.Answer, approvals []tool.Approval) map[string]Answer {
	waiting, times := index(pending)
	given := make(map[string]Answer, len(pending))
	touched := make(map[string]bool, len(pending))
	take := func(id string, wanted tool.ActionType) *tool.Action {
		action := waiting[id]
		if action == nil && times[id] > 1 {
			m.add(ErrUnknownCall, "%s is the id of %d calls that wait; use their call ids", shownID(id), times[id])
			return nil
		}
		if action == nil {
			m.add(ErrUnknownCall, "%s", shownID(id))
			return nil
		}
		if touched[action.CallID] {
			m.add(ErrDoubledAnswer, "%s", name(action))
		}
		touched[action.CallID] = true
		if action.Type != wanted {
			m.add(ErrWrongAnswer, "%s waits for %s", name(action), needs(action.Type))
			return nil
		}
		return action
	}
	for i := range outputs {
		action := take(outputs[i].CallID, tool.NeedsOutput)
		if action == nil {
			continue
		}
		if data := outputs[i].Result.Data; len(data) > 0 && !json.Valid(data) {
			m.add(ErrWrongAnswer, "the data of the output for %s is not JSON", name(action))
		}
		given[action.CallID] = Answer{Output: &outputs[i].Result}
	}
	for i := range approvals {
		action := take(approvals[i].CallID, tool.NeedsApproval)
		if action == nil {
			continue
		}
		if err := checkScope(approvals[i]); err != nil {
			m.add(ErrWrongAnswer, "%s: %v", name(action), err)
		}
		if approvals[i].Approve && approvals[i].Fingerprint != action.Fingerprint { // the right one would prove nothing then
			m.add(ErrNotApproved, "%s: the fingerprint is missing, or not that of what waits", name(action))
		}
		given[action.CallID] = Answer{Approval: &approvals[i]}
	}
	for i := range pending {
		if action := &pending[i]; !touched[action.CallID] {
			m.add(ErrMissingAnswer, "%s waits for %s", name(action), needs(action.Type))
		}
	}
	return given
}

// index finds actions by call id, and by the provider's id if that is unambiguous and is not another action's call id.
// It also counts the actions with each provider's id.
func index(pending []tool.Action) (byID map[string]*tool.Action, times map[string]int) {
	byID = make(map[string]*tool.Action, 2*len(pending))
	times = make(map[string]int, len(pending))
	for i := range pending {
		byID[pending[i].CallID] = &pending[i]
		times[pending[i].Call.ID]++
	}
	for i := range pending {
		id := pending[i].Call.ID
		if _, taken := byID[id]; !taken && times[id] == 1 {
			byID[id] = &pending[i]
		}
	}
	return byID, times
}

// mistakes are all mistakes of a submission.
type mistakes []mistake

// mistake is one mistake. Its kind is one of the package's errors.
type mistake struct {
	kind   error
	detail string
}

func (m mistake) Error() string { return m.kind.Error() + ": " + m.detail }

func (m mistake) Unwrap() error { return m.kind }

const (
	maxMistakes = 32 // listed in an error's text
	maxShownID  = 64 // bytes
)

// add adds a mistake, unless it is already listed.
func (m *mistakes) add(kind error, format string, arguments ...any) {
	found := mistake{kind, fmt.Sprintf(format, arguments...)}
	if !slices.Contains((*m)[:min(len(*m), maxMistakes)], found) {
		*m = append(*m, found)
	}
}

// Error lists the first mistakes, by kind.
func (m mistakes) Error() string {
	var kinds []error
	details := map[error][]string{}
	for _, mistake := range m[:min(len(m), maxMistakes)] {
		if details[mistake.kind] == nil {
			kinds = append(kinds, mistake.kind)
		}
		details[mistake.kind] = append(details[mistake.kind], mistake.detail)
	}
	var texts []string
	for _, kind := range kinds {
		texts = append(texts, kind.Error()+": "+strings.Join(details[kind], ", "))
	}
	if more := len(m) - maxMistakes; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns all mistakes.
func (m mistakes) Unwrap() []error {
	all := make([]error, len(m))
	for i, mistake := range m {
		all[i] = mistake
	}
	return all
}

// shownID returns an id that was Answer in quotes, unless it is the JSON of a number or has quotes: MCP has both 1
// and "1".
func shownID(id string) string {
	if shown := tool.Shown(id, maxShownID); id != "" && strings.Contains(`"-0123456789`, id[:1]) &&
		json.Valid([]byte(id)) {
		return shown
	}
	return strconv.Quote(tool.Shown(id, maxShownID))
}

func name(action *tool.Action) string {
	return fmt.Sprintf("%s (%s)", action.CallID, tool.Shown(action.Tool, maxShownID))
}

func needs(kind tool.ActionType) string {
	if kind == tool.NeedsApproval {
		return "an approval"
	}
	return "an output"
}
