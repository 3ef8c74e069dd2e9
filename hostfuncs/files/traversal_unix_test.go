//go:build unix

package files_test

import (
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/guestfiles"
	"github.com/caisson-run/caisson/manifests"
)

// fewestTraversals is the minimum number of different spellings that the generator must make.
const fewestTraversals = 20_000

const deepest = 8 // directories that a spelling climbs

// traversals spells ways up to targets, which are relative to some directory above, as they are tried against servers:
// each step and separator, plain or disguised, to each depth, and the plain ones after each prefix and before each
// suffix.
func traversals(targets ...string) []string {
	steps := []string{
		"..", ".", "...", "....", "..;", ".. ", " ..", ". .", "..\t", "..\x00", "..%00", "..\u200b", "\u202e..", "x/../..",
		"%2e%2e", ".%2e", "%252e%252e", "%c0%ae%c0%ae", "%uff0e%uff0e", "0x2e0x2e", "\xc0\xae\xc0\xae", "\xe0\x80\xae\xe0\x80\xae", "\uff0e\uff0e", "\u2025", "\u2024\u2024",
	}
	separators := []string{
		"/", "//", "///", "/./", "/.//", `\`, `\/`, `\\`, ";/", "\x00/", ":",
		"%2f", "%252f", "%5c", "%c0%af", "%uff0f", "\xc0\xaf", "\uff0f", "\u2215", "\u29f8",
	}
	prefixes := []string{"", "/", "//", "./", ".//./", "sub/", "sub/./../", "absent/../", "~/", `\`, `\\?\`, `C:\`, "file://", "/proc/self/root/"}
	suffixes := []string{"", "\x00", "\x00.txt", "%00", ".", "..", "/", "/.", "/../secret.txt", " ", "::$DATA", "?", "#", ";"}
	var spellings []string
	for depth := 1; depth <= deepest; depth++ {
		for _, target := range targets {
			for _, separator := range separators {
				for _, step := range steps {
					spellings = append(spellings, strings.Repeat(step+separator, depth)+strings.ReplaceAll(target, "/", separator))
				}
			}
			for _, prefix := range prefixes {
				for _, suffix := range suffixes {
					for _, separator := range separators[:2] {
						spellings = append(spellings, prefix+strings.Repeat(".."+separator, depth)+target+suffix)
					}
				}
			}
		}
	}
	slices.Sort(spellings)
	return slices.Compact(spellings)
}

// attempts are the ways to a spelling: below the directory, through the link esc to "/", and both once more from the
// virtual root.
func attempts(spelling string) []string {
	return []string{spelling, "esc/" + spelling, "project/" + spelling, "project/esc/" + spelling}
}

func TestNoSpellingOfAPathLeavesTheDirectory(t *testing.T) {
	w := newWorld(t, "esc => /", "sub/", "f = text")
	spellings := traversals("etc/passwd", "outside/secret.txt", w.secret[1:])
	require.GreaterOrEqual(t, len(spellings), fewestTraversals)
	for _, access := range []manifests.Access{manifests.AccessRead, manifests.AccessReadWrite} {
		view := w.open(access)
		project, root := preopen(t, view, "/project"), preopen(t, view, "/")
		for _, spelling := range spellings {
			for i, attempt := range attempts(spelling) {
				d := project
				if i >= 2 {
					d = root
				}
				f, dir, err := d.Open(attempt, guestfiles.OpenOptions{Read: true})
				if err == nil {
					require.Fail(t, "opened", "%q: %v %v", attempt, f, dir)
				}
			}
		}
		require.NotEmpty(t, view.Journal.Denials())
		text, err := read(project, "sub/.././f")
		require.NoError(t, err, "what stays inside is no attack")
		assert.Equal(t, "text", text)
	}
	assert.False(t, w.outsideChanged())
}

// TestNoSpellingOfAPathLeavesTheDirectoryControl opens the same with plain calls.
func TestNoSpellingOfAPathLeavesTheDirectoryControl(t *testing.T) {
	w := newWorld(t, "esc => /", "sub/", "f = text")
	passwd, err := os.ReadFile("/etc/passwd")
	require.NoError(t, err)
	leaks := [2]int{}
	for _, spelling := range traversals("etc/passwd", "outside/secret.txt", w.secret[1:]) {
		for i, attempt := range attempts(spelling)[:2] {
			f, err := os.Open(w.project + "/" + attempt)
			if err != nil {
				continue
			}
			text, err := io.ReadAll(f)
			require.NoError(t, f.Close())
			if err == nil && (string(text) == secret || string(text) == string(passwd)) {
				leaks[i]++
			}
		}
	}
	t.Logf("plain calls leak through %d spellings, and through %d behind a link", leaks[0], leaks[1])
	assert.Greater(t, leaks[0], 100)
	assert.Greater(t, leaks[1], 100)
}
