// Package oldfolders reads the folders in which versions before 0.1 kept records of calls, tokens and agents, one file
// for each.
package oldfolders

import (
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
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/internal/folder"
)

// The maximum sizes of files: of a record, which was that of a whole folder, of a token and of an agent.
const (
	maxRecord = 64 << 20
	maxToken  = 64 << 10
	maxAgent  = 2 << 20
)

// Document is the content of a token's or agent's file.
type Document struct {
	Tenant, Name string // of a token, no tenant and its id
	Content      []byte
}

// Records calls keep for the content of each record in a folder, oldest first. Then it renames the folder, so that a
// second call finds nothing. It does nothing if there is no folder. What cannot be read is left out, and reported by
// the error once the rest has been kept.
func Records(dir string, keep func(content []byte) error) error {
	return imported(dir, func(root *os.Root, files []string) (left, err error) {
		for _, id := range slices.Backward(folder.IDs(slices.Values(files))) { // these are newest first
			content, unread := read(root, id+folder.Suffix, maxRecord)
			if left = errors.Join(left, unread); unread != nil {
				continue
			}
			if err := keep(content); err != nil {
				return nil, err
			}
		}
		return left, nil
	})
}

// Tokens calls keep for all tokens in a folder, unchanged, and renames it; see [Records].
func Tokens(dir string, keep func(tokens []Document) error) error {
	return imported(dir, func(root *os.Root, files []string) (left, err error) {
		var tokens []Document
		for _, file := range files {
			id, isToken := named(file, "token.")
			if !isToken {
				continue
			}
			content, unread := read(root, file, maxToken)
			if unread != nil { // it is not a token that works, but it counts as one: without any, a server is open
				left, content = errors.Join(left, unread), []byte("{}")
			}
			tokens = append(tokens, Document{Name: id, Content: content})
		}
		return left, keep(tokens)
	})
}

// Agents calls keep for all agents in a folder, which has a folder for each tenant, and renames it; see [Records].
func Agents(dir string, keep func(agents []Document) error) error {
	return imported(dir, func(root *os.Root, tenants []string) (left, err error) {
		var agents []Document
		for _, tenant := range tenants {
			found, unread, err := agentsOf(filepath.Join(root.Name(), tenant))
			if err != nil {
				return nil, err
			}
			agents, left = append(agents, found...), errors.Join(left, unread)
		}
		return left, keep(agents)
	})
}

// agentsOf returns the agents in the folder of a tenant, whose name has a digest of the tenant's.
func agentsOf(dir string) (agents []Document, left, err error) {
	root, err := folder.Open(dir)
	if err != nil {
		return nil, nil, at(dir, err)
	}
	defer func() { _ = root.Close() }()
	files, err := sorted(root)
	for _, file := range files {
		name, isAgent := named(file, "agent.")
		if !isAgent {
			continue
		}
		content, unread := read(root, file, maxAgent)
		var agent struct{ Tenant, Name string }
		if unread == nil {
			unread = at(filepath.Join(dir, file), json.Unmarshal(content, &agent))
		}
		digest := sha256.Sum256([]byte("caisson-tenant/v1 " + agent.Tenant))
		switch {
		case unread != nil:
			left = errors.Join(left, unread)
		case agent.Name != name || hex.EncodeToString(digest[:]) != filepath.Base(dir):
			left = errors.Join(left, at(filepath.Join(dir, file), errors.New("it is another agent's")))
		default:
			agents = append(agents, Document{agent.Tenant, name, content})
		}
	}
	return agents, left, err
}

// imported calls work with the names of the files in a folder, and renames it. work returns in left what was left out;
// err means that the rest was not kept.
func imported(dir string, work func(root *os.Root, files []string) (left, err error)) error {
	root, err := folder.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return at(dir, err)
	}
	files, err := sorted(root)
	var left error
	if err == nil {
		left, err = work(root, files)
	}
	if err = errors.Join(err, root.Close()); err != nil {
		return err
	}
	now := dir + renamed
	err = os.Rename(dir, now)
	for n := 2; errors.Is(err, fs.ErrExist) && n < 100; n++ { // an earlier version has made another
		now = dir + renamed + "-" + strconv.Itoa(n)
		err = os.Rename(dir, now)
	}
	if left != nil {
		left = fmt.Errorf("these files were not imported, and are in %s now: %w", now, left)
	}
	if !errors.Is(err, fs.ErrNotExist) { // else another process has imported it
		left = errors.Join(left, err)
	}
	return left
}

// renamed is added to the name of a folder that was imported.
const renamed = "-imported"

func sorted(root *os.Root) ([]string, error) {
	files, err := folder.Look(root)
	return slices.Sorted(maps.Keys(files)), err
}

func read(root *os.Root, file string, limit int64) ([]byte, error) {
	content, err := folder.Read(root, file, limit)
	return content, at(filepath.Join(root.Name(), file), err)
}

func named(file, prefix string) (name string, ok bool) {
	name, ok = strings.CutSuffix(file, folder.Suffix)
	if !ok {
		return "", false
	}
	return strings.CutPrefix(name, prefix)
}

func at(path string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: "import", Path: path, Err: err}
}
