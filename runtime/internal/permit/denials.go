package permit

import (
	"bytes"
	"encoding/json"
	"path"
	"strings"

	"github.com/caisson-run/caisson/tool"
)

// Limits on the arguments that are compared with each denied path, so that the cost does not depend on the model.
const (
	maxClimbs    = 8
	maxClimbText = 4096 // bytes
)

// Explain completes receipts of one call from package files, which does not know what the manifest requests.
// A path under a permission that was requested but not granted needs no change to the manifest.
func (p *Permit) Explain(arguments tool.Arguments, denials []tool.Denial) {
	for i, denial := range denials {
		for j, request := range p.manifest.Permissions.Files {
			d := p.Decisions[j] // decisions on files come first
			if d.Effective == "" && request.Path.Matches(denial.Value) {
				denials[i].Rule, denials[i].Allow = d.Reason, d.Allow
			}
		}
	}
	p.explainClimbs(arguments, denials)
}

// Reaches reports whether a guest path is inside a directory that the tool has. It is false for
// paths that are not clean, such as /project/../secret.
func (p *Permit) Reaches(guest string) bool {
	if path.Clean(guest) != guest {
		return false
	}
	for _, mount := range p.Mounts {
		if mount.Tree == nil && guest != mount.Guest.String() && mount.Guest.Matches(guest) {
			return true
		}
	}
	return false
}

// explainClimbs changes the receipts of paths to which an argument leads that climbs out of a mounted directory, such
// as "../../etc/passwd". The guest may have cleaned the path, so that it names another directory. A grant for that
// directory would not help: the caller has to write a path in the mounted directory.
func (p *Permit) explainClimbs(arguments tool.Arguments, denials []tool.Denial) {
	if len(denials) == 0 || len(p.Mounts) == 0 {
		return
	}
	climbing := climbingArguments(arguments)
	for i := range denials {
		for _, argument := range climbing {
			if directory := p.leftBy(argument, denials[i].Value); directory != "" {
				denials[i].Rule = "the path leaves the granted directory " + directory + "; paths are relative to it"
				denials[i].Allow = tool.Allow{}
			}
		}
	}
}

// climbingArguments returns the first paths with ".." in the arguments: texts, and elements of lists of texts.
func climbingArguments(arguments tool.Arguments) []string {
	var climbing []string
	for _, name := range arguments.Names() {
		value, _ := arguments.Get(name)
		if !bytes.Contains(value, []byte("..")) {
			continue
		}
		texts := make([]string, 1)
		if json.Unmarshal(value, &texts[0]) != nil && json.Unmarshal(value, &texts) != nil {
			continue
		}
		for _, text := range texts {
			if strings.Contains(text, "..") && len(text) <= maxClimbText {
				climbing = append(climbing, text)
			}
			if len(climbing) == maxClimbs {
				return climbing
			}
		}
	}
	return climbing
}

// leftBy returns the mounted directory that a path leaves on its way to a denied path, or "". The path is relative to
// the directory, or begins with it.
func (p *Permit) leftBy(argument, denied string) string {
	denied = path.Clean(denied)
	for _, m := range p.Mounts {
		directory := m.Guest.String()
		relative, begins := strings.CutPrefix(argument, strings.TrimSuffix(directory, "/")+"/")
		if path.IsAbs(argument) && !begins {
			continue
		}
		target := path.Join(directory, relative)
		if target == denied && target != directory && !strings.HasPrefix(target, strings.TrimSuffix(directory, "/")+"/") {
			return directory
		}
	}
	return ""
}
