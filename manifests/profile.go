package manifests

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/caisson-run/caisson/manifests/internal/keypath"
)

// ErrProfile is what failures of [Policy.ProfileNamed] wrap.
var ErrProfile = errors.New("no such profile")

// standardProfile is the name of the profile that holds where none is named.
const standardProfile = "standard"

// BuiltinProfiles returns the profiles that every policy has, the narrowest first. The
// caller may change the result.
func BuiltinProfiles() []Profile {
	return []Profile{
		{Name: "strict", Limits: Limits{Timeout: 5 * time.Second, Memory: 32 << 20}, NoNetwork: true, NoWrites: true},
		{Name: standardProfile, Limits: Limits{Timeout: 10 * time.Second, Memory: 128 << 20}},
		{Name: "lenient", Limits: Limits{Timeout: 30 * time.Second, Memory: 512 << 20}},
	}
}

// Extend returns a copy of the profile with a name of its own, in which the limits that
// are not zero take the place of the profile's. A program gives it to [Policy.Profiles],
// or to a runtime, after changing its other fields as it likes.
func (p Profile) Extend(name string, limits Limits) Profile {
	p.Name = name
	p.Limits = limits.or(p.Limits)
	return p
}

// ProfileNamed returns a built-in profile, or one that the policy defines. The empty name
// stands for the policy's own choice, and where it has none, or is nil, for standard. A
// built-in name always means the built-in profile. The error wraps [ErrProfile] and names
// the profiles that there are.
func (p *Policy) ProfileNamed(name string) (Profile, error) {
	known := BuiltinProfiles()
	if p != nil {
		known = append(known, p.Profiles...)
		name = cmp.Or(name, p.Profile)
	}
	name = cmp.Or(name, standardProfile)
	at := slices.IndexFunc(known, func(profile Profile) bool { return profile.Name == name })
	if at < 0 {
		return Profile{}, fmt.Errorf("%w: %q; there are %s", ErrProfile, clip(name), strings.Join(profileNames(known), ", "))
	}
	return known[at], nil
}

func profileNames(profiles []Profile) []string {
	names := make([]string, len(profiles))
	for i, profile := range profiles {
		names[i] = profile.Name
	}
	return names
}

// or returns the limits with those that are zero taken from others.
func (l Limits) or(others Limits) Limits {
	return Limits{
		Memory:    cmp.Or(l.Memory, others.Memory),
		Timeout:   cmp.Or(l.Timeout, others.Timeout),
		Fuel:      cmp.Or(l.Fuel, others.Fuel),
		Output:    cmp.Or(l.Output, others.Output),
		Stderr:    cmp.Or(l.Stderr, others.Stderr),
		HTTPCalls: cmp.Or(l.HTTPCalls, others.HTTPCalls),
		HTTPBytes: cmp.Or(l.HTTPBytes, others.HTTPBytes),
		OpenFiles: cmp.Or(l.OpenFiles, others.OpenFiles),
		DiskBytes: cmp.Or(l.DiskBytes, others.DiskBytes),
	}
}

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
// a draft, or a cycle, has nothing wrong with it.
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
