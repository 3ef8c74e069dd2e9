package agents

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/caisson-run/caisson/internal/folder"
	"github.com/caisson-run/caisson/tool"
)

// Store keeps agents in a private folder, one file each. Any number of processes may use it at the same time: a file
// is written whole or not at all, and of two that save the same agent the last one wins.
type Store struct{ path string }

// In returns the store in a folder, which is created when the first agent is saved. The folder must be accessible only
// to this user, and no tool may write to it, or it could choose its own agent's tools.
func In(path string) Store { return Store{path} }

// schema is the version of the file format, and maxFile the maximum size of a file in bytes.
const (
	schema  = "caisson-agent/v1"
	maxFile = 2 << 20
)

// stored is the content of a file.
type stored struct {
	Schema string `json:"schema"`
	Tenant string `json:"tenant"`
	Agent
}

// Save checks and stores an agent, in place of any with its name. The error is an [*Error] with all problems if
// something in the agent is wrong, such as an unknown tool. Then nothing is stored.
func (s Store) Save(tenant string, agent Agent, tools toolSet) error {
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
	if len(content) > maxFile {
		return &Error{[]string{fmt.Sprintf("it has %d bytes, more than %d", len(content), maxFile)}}
	}
	root, err := s.root(folder.Make, tenant)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return folder.Write(root, fileOf(agent.Name), content)
}

// Load returns an agent, and the names in it of tools that no longer exist, which it leaves out of AllowedTools. The
// error wraps [ErrNotFound] or [ErrDamaged].
func (s Store) Load(tenant, name string, tools toolSet) (agent Agent, unknown []string, err error) {
	if !agentName.MatchString(name) {
		return Agent{}, nil, fmt.Errorf("%w: %s", ErrNotFound, tool.Shown(name, 64))
	}
	root, err := s.root(folder.Open, tenant)
	if err != nil {
		return Agent{}, nil, notFound(name, err)
	}
	defer func() { _ = root.Close() }()
	return load(root, tenant, name, tools)
}

func load(root *os.Root, tenant, name string, tools toolSet) (agent Agent, unknown []string, err error) {
	content, err := folder.Read(root, fileOf(name), maxFile)
	if errors.Is(err, folder.ErrTooLarge) || errors.Is(err, folder.ErrIrregular) {
		return Agent{}, nil, fmt.Errorf("%w: %s: %w", ErrDamaged, name, err)
	}
	if err != nil {
		return Agent{}, nil, notFound(name, err)
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

// root opens the folder of a tenant's agents.
func (s Store) root(open func(path string) (*os.Root, error), tenant string) (*os.Root, error) {
	root, err := open(s.dir(tenant))
	if errors.Is(err, folder.ErrExposed) {
		err = fmt.Errorf("%s: %w", s.dir(tenant), err)
	}
	return root, err
}

func notFound(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s", ErrNotFound, name)
	}
	return fmt.Errorf("agent %s: %w", name, err)
}

// Names returns the names of a tenant's agents, sorted.
func (s Store) Names(tenant string) ([]string, error) {
	root, err := s.root(folder.Open, tenant)
	if errors.Is(err, fs.ErrNotExist) {
		return []string{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	files, err := folder.Look(root)
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		name, isAgent := strings.CutSuffix(strings.TrimPrefix(file, filePrefix), folder.Suffix)
		if isAgent && file == fileOf(name) && agentName.MatchString(name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// Remove removes an agent. The error wraps [ErrNotFound] if there is none.
func (s Store) Remove(tenant, name string) error {
	if !agentName.MatchString(name) {
		return fmt.Errorf("%w: %s", ErrNotFound, tool.Shown(name, 64))
	}
	root, err := s.root(folder.Open, tenant)
	if err != nil {
		return notFound(name, err)
	}
	defer func() { _ = root.Close() }()
	if _, err := root.Lstat(fileOf(name)); err != nil {
		return notFound(name, err)
	}
	return folder.Remove(root, fileOf(name))
}

// filePrefix begins the name of an agent's file: some names mean a device on some systems.
const filePrefix = "agent."

func fileOf(name string) string { return filePrefix + name + folder.Suffix }

// dir returns the folder that holds the agents of a tenant, whose name may hold anything. No tool may be able to write
// to it.
func (s Store) dir(tenant string) string {
	digest := sha256.Sum256([]byte("caisson-tenant/v1 " + tenant))
	return filepath.Join(s.path, hex.EncodeToString(digest[:]))
}
