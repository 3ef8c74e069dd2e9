package manifests

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/manifests/internal/keypath"
)

// profileDraft is a profile as a policy writes it. What it extends may stand after it.
type profileDraft struct {
	name            string
	path            string // in the document
	extends         string
	limits          Limits
	network, writes string // none, granted, or empty for what it extends has
}

// profiles reads the profiles of a policy and fills in what they extend.
func (r *reader) profiles(n *node, path string) []Profile {
	var drafts []profileDraft
	r.mapping(n, path, maxList, func(m member, path string) {
		draft := r.profile(m, path)
		if !r.key(m, path, toolName, nameFix) {
			return
		}
		if _, builtin := builtinProfile(m.key); builtin {
			r.add(m.at, path, Conflict, fmt.Sprintf("%q is a built-in profile", m.key), "choose another name, and write extends: "+m.key)
			return
		}
		drafts = append(drafts, draft)
	})
	return r.completeProfiles(drafts)
}

func (r *reader) profile(m member, path string) profileDraft {
	d := profileDraft{name: m.key, path: path, extends: standardProfile}
	r.object(m.value, path,
		field{"extends", "", func(n *node, path string) { d.extends = r.name(n, path) }},
		field{"limits", "", func(n *node, path string) { r.limits(n, path, &d.limits) }},
		field{"network", "", func(n *node, path string) { d.network = r.choice(n, path, "none", "granted") }},
		field{"writes", "", func(n *node, path string) { d.writes = r.choice(n, path, "none", "granted") }},
	)
	return d
}

// completeProfiles follows each draft to the built-in profile that it extends in the end.
func (r *reader) completeProfiles(drafts []profileDraft) []Profile {
	byName := map[string]profileDraft{}
	for _, d := range drafts {
		byName[d.name] = d
	}
	inCircle := map[string]bool{}
	var profiles []Profile
	for _, d := range drafts {
		chain, circle := ancestry(d, byName)
		last := chain[len(chain)-1]
		switch base, known := builtinProfile(last.extends); {
		case circle && !inCircle[d.name]:
			for _, link := range chain {
				inCircle[link.name] = true
			}
			r.addExtends(d, Conflict, "the profile extends itself: "+circleText(chain), "extend a built-in profile: "+strings.Join(profileNames(BuiltinProfiles()), ", "))
		case circle:
		case !known:
			r.unknownParent(d, byName)
		default:
			for _, link := range slices.Backward(chain) {
				base = link.extend(base)
			}
			profiles = append(profiles, base)
		}
	}
	return profiles
}

// ancestry returns a draft and those that it extends, one after the other, and whether
// they come back to it.
func ancestry(d profileDraft, byName map[string]profileDraft) (chain []profileDraft, circle bool) {
	seen := map[string]bool{}
	for next, found := d, true; found && !seen[next.name]; next, found = byName[next.extends] {
		seen[next.name] = true
		chain = append(chain, next)
	}
	return chain, chain[len(chain)-1].extends == d.name
}

func circleText(chain []profileDraft) string {
	var names []string
	for _, d := range chain {
		names = append(names, d.name)
	}
	return strings.Join(append(names, names[0]), " extends ")
}

func (d profileDraft) extend(base Profile) Profile {
	extended := base.Extend(d.name, d.limits)
	if d.network != "" {
		extended.NoNetwork = d.network == "none"
	}
	if d.writes != "" {
		extended.NoWrites = d.writes == "none"
	}
	return extended
}

// unknownParent reports a draft that extends what there is not. A draft that extends such
// a draft, or one in a circle, has nothing wrong with it.
func (r *reader) unknownParent(d profileDraft, byName map[string]profileDraft) {
	if _, own := byName[d.extends]; own || d.extends == "" {
		return
	}
	r.addExtends(d, InvalidValue, fmt.Sprintf("there is no profile %q", clip(d.extends)), knownProfiles(d.extends, slices.Collect(maps.Keys(byName))))
}

func (r *reader) addExtends(d profileDraft, kind ProblemKind, message, fix string) {
	path := keypath.Key(d.path, "extends")
	r.add(r.place(path), path, kind, message, fix)
}

// checkProfile makes sure that the policy's choice is a profile.
func (r *reader) checkProfile(root *node, p *Policy) {
	var own []string
	if profiles := root.get("profiles"); profiles != nil {
		for _, m := range profiles.members {
			own = append(own, m.key)
		}
	}
	if _, builtin := builtinProfile(p.Profile); builtin || p.Profile == "" || slices.Contains(own, p.Profile) {
		return
	}
	r.add(root.get("profile").at, "profile", InvalidValue, fmt.Sprintf("there is no profile %q", clip(p.Profile)), knownProfiles(p.Profile, own))
}

// knownProfiles says which name a wrong one should have been.
func knownProfiles(wrong string, own []string) string {
	known := profileNames(BuiltinProfiles())
	for _, name := range own {
		if toolName.MatchString(name) && !slices.Contains(known, name) {
			known = append(known, name)
		}
	}
	slices.Sort(known)
	fix := "write one of " + strings.Join(known, ", ")
	if near := nearest(wrong, known); near != "" {
		fix = "did you mean " + near + "? It is one of " + strings.Join(known, ", ")
	}
	return fix
}

func builtinProfile(name string) (Profile, bool) {
	for _, profile := range BuiltinProfiles() {
		if profile.Name == name {
			return profile, true
		}
	}
	return Profile{}, false
}
