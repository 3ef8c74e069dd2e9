package agents

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/tool"
)

// Store holds agents in a ledger. It is safe for concurrent use, also by several processes: of two that save the same
// agent, the last one wins. Get one from [Open]. It must be closed.
type Store struct{ documents *ledger.Documents }

// Open opens the agents of a state folder, or of the PostgreSQL database with a URL if it is not empty: those of
// caisson.Options with this StateDir and Records.Database. The folder must be accessible only to this user, and no tool
// may write to it, or it could choose its own agent's tools. It is created when the first agent is saved. Agents that
// an earlier version has stored in files of the folder are imported.
func Open(ctx context.Context, stateDir, database string) (*Store, error) {
	documents, err := ledger.OpenDocuments(ctx, ledger.AgentKind, stateDir, database)
	if err != nil {
		return nil, err
	}
	return &Store{documents}, nil
}

// Close closes the store.
func (s *Store) Close() error { return s.documents.Close() }

// schema is the version of the stored form, and maxSize its maximum size in bytes.
const (
	schema  = "caisson-agent/v1"
	maxSize = 2 << 20
	// loadTime is how long a call waits for its agent when the ledger does not answer.
	loadTime = 10 * time.Second
)

// stored is what is stored of an agent.
type stored struct {
	Schema string `json:"schema"`
	Tenant string `json:"tenant"`
	Agent
}

// Save checks and stores an agent, in place of any with its name. The error is an [*Error] with all problems if
// something in the agent is wrong, such as an unknown tool. Then nothing is stored.
func (s *Store) Save(ctx context.Context, tenant string, agent Agent, tools toolSet) error {
	if !utf8.ValidString(tenant) {
		return &Error{[]string{"the tenant's name is not valid UTF-8"}}
	}
	agent, err := agent.check(tools)
	if err != nil {
		return err
	}
	content, err := json.Marshal(stored{schema, tenant, agent})
	if err != nil {
		return err
	}
	if len(content) > maxSize {
		return &Error{[]string{fmt.Sprintf("it has %d bytes, more than %d", len(content), maxSize)}}
	}
	return s.documents.Change(ctx, tenant, agent.Name, func([]byte) ([]byte, error) { return content, nil })
}

// Load returns an agent, and the names in it of tools that no longer exist, which it leaves out of AllowedTools. The
// error wraps [ErrNotFound] or [ErrDamaged].
func (s *Store) Load(
	ctx context.Context, tenant, name string, tools toolSet,
) (agent Agent, unknown []string, err error) {
	if !agentName.MatchString(name) {
		return Agent{}, nil, notFound(name)
	}
	ctx, cancel := context.WithTimeout(ctx, loadTime)
	defer cancel()
	content, err := s.documents.Read(ctx, tenant, name)
	if errors.Is(err, ledger.ErrNotFound) {
		err = notFound(name)
	}
	if err != nil {
		return Agent{}, nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	var found stored
	err = decoder.Decode(&found)
	if err == nil && len(bytes.TrimSpace(content[decoder.InputOffset():])) > 0 {
		err = errors.New("data follows the JSON value")
	}
	if err != nil {
		return Agent{}, nil, fmt.Errorf("%w: %s: %w", ErrDamaged, name, err)
	}
	if found.Schema != schema || found.Tenant != tenant || found.Name != name {
		return Agent{}, nil, fmt.Errorf("%w: %s: it is another agent's, or has not the schema %s", ErrDamaged, name, schema)
	}
	found.AllowedTools, unknown = resolve(found.AllowedTools, tools, true)
	if agent, err = found.check(tools); err != nil {
		return Agent{}, nil, fmt.Errorf("%w: %s: %w", ErrDamaged, name, err)
	}
	return agent, unknown, nil
}

func notFound(name string) error { return fmt.Errorf("%w: %s", ErrNotFound, tool.Shown(name, 64)) }

// Names returns the names of a tenant's agents, sorted.
func (s *Store) Names(ctx context.Context, tenant string) ([]string, error) {
	names, err := s.documents.Names(ctx, tenant)
	slices.Sort(names)
	return append([]string{}, names...), err
}

// Remove removes an agent. The error wraps [ErrNotFound] if there is none.
func (s *Store) Remove(ctx context.Context, tenant, name string) error {
	if !agentName.MatchString(name) {
		return notFound(name)
	}
	return s.documents.Change(ctx, tenant, name, func(old []byte) ([]byte, error) {
		if old == nil {
			return nil, notFound(name)
		}
		return nil, nil
	})
}
