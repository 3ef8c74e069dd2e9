package manifests

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/caisson-run/caisson/internal/keypath"
	"github.com/caisson-run/caisson/internal/mistake"
)

// ErrProfile is wrapped by the errors of [Policy.ProfileNamed].
var ErrProfile = errors.New("no such profile")

// standardProfile is the name of the default profile.
const standardProfile = "standard"

// BuiltinProfiles returns the profiles available in every policy, strictest first. The caller may modify the result.
func BuiltinProfiles() []Profile {
	return []Profile{
		{Name: "strict", Limits: Limits{Timeout: 5 * time.Second, Memory: 32 << 20}, NoNetwork: true, NoWrites: true},
		{Name: standardProfile, Limits: Limits{Timeout: 10 * time.Second, Memory: 128 << 20}},
		{Name: "lenient", Limits: Limits{Timeout: 30 * time.Second, Memory: 512 << 20}},
	}
}

// ProfileNamed returns a built-in profile or one that the policy defines. The empty name means the
// policy's Profile, and standard if that is empty or p is nil. A built-in name always means the
// built-in profile. The error wraps [ErrProfile] and lists the known profiles.
func (p *Policy) ProfileNamed(name string) (Profile, error) {
	known := BuiltinProfiles()
	if p != nil {
		known = append(known, p.Profiles...)
		name = cmp.Or(name, p.Profile)
	}
	name = cmp.Or(name, standardProfile)
	for _, profile := range known {
		if profile.Name == name {
			return profile, nil
		}
	}
	return Profile{}, fmt.Errorf("%w: %q; there are %s", ErrProfile, clip(name), strings.Join(profileNames(known), ", "))
}

func profileNames(profiles []Profile) []string {
	names := make([]string, len(profiles))
	for i, profile := range profiles {
		names[i] = profile.Name
	}
	return names
}

// or returns the limits with zero fields replaced by those of others.
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

// profileDraft is a profile as written in a policy. The profile it extends may be defined after it.
type profileDraft struct {
	name            string
	path            string // in the document
	extends         string
	limits          Limits
	network, writes string // none, granted, or empty to inherit
}

// profiles reads the profiles of a policy and adds the settings of the profiles that they extend.
func (r *reader) profiles(n *node, path string) []Profile {
	var drafts []profileDraft
	r.mapping(n, path, maxList, func(m member, path string) {
		d := profileDraft{name: m.key, path: path, extends: standardProfile}
		r.object(m.value, path,
			optional("extends", &d.extends, r.name),
			optional("limits", &d.limits, r.limits),
			optional("network", &d.network, choice(r, "none", "granted")),
			optional("writes", &d.writes, choice(r, "none", "granted")),
		)
		if !r.key(m, path, toolName, nameFix) {
			return
		}
		if _, builtin := builtinProfile(m.key); builtin {
			r.add(m.at, path, mistake.Conflict, fmt.Sprintf("%q is a built-in profile", m.key),
				"choose another name, and write extends: "+m.key)
			return
		}
		drafts = append(drafts, d)
	})
	return r.completeProfiles(drafts)
}

// completeProfiles resolves each draft to the built-in profile at the end of its extends chain.
func (r *reader) completeProfiles(drafts []profileDraft) []Profile {
	byName := map[string]profileDraft{}
	for _, d := range drafts {
		byName[d.name] = d
	}
	inCycle := map[string]bool{}
	var profiles []Profile
	for _, d := range drafts {
		chain, cycle := ancestry(d, byName)
		last := chain[len(chain)-1]
		switch base, known := builtinProfile(last.extends); {
		case cycle && !inCycle[d.name]:
			text := "the profile extends itself: "
			for _, link := range chain {
				inCycle[link.name] = true
				text += link.name + " extends "
			}
			r.addExtends(d, mistake.Conflict, text+d.name,
				"extend a built-in profile: "+strings.Join(profileNames(BuiltinProfiles()), ", "))
		case cycle:
		case !known && last.name != d.name: // its parent is reported
		case !known:
			r.addExtends(d, mistake.InvalidValue, fmt.Sprintf("there is no profile %q", clip(d.extends)),
				knownProfiles(d.extends, slices.Collect(maps.Keys(byName))))
		default:
			for _, link := range slices.Backward(chain) {
				base = link.extend(base)
			}
			profiles = append(profiles, base)
		}
	}
	return profiles
}

// ancestry returns a draft followed by the drafts it extends, and whether they form a cycle through it.
func ancestry(d profileDraft, byName map[string]profileDraft) (chain []profileDraft, cycle bool) {
	seen := map[string]bool{}
	for next, found := d, true; found && !seen[next.name]; next, found = byName[next.extends] {
		seen[next.name] = true
		chain = append(chain, next)
	}
	return chain, chain[len(chain)-1].extends == d.name
}

// extend returns a profile with the changes of the draft.
func (d profileDraft) extend(base Profile) Profile {
	base.Name, base.Limits = d.name, d.limits.or(base.Limits)
	if d.network != "" {
		base.NoNetwork = d.network == "none"
	}
	if d.writes != "" {
		base.NoWrites = d.writes == "none"
	}
	return base
}

func (r *reader) addExtends(d profileDraft, kind mistake.Kind, message, fix string) {
	path := keypath.Key(d.path, "extends")
	r.add(r.place(path), path, kind, message, fix)
}

func (r *reader) checkProfile(root *node, p *Policy) {
	var own []string
	for _, m := range root.below("profiles").members {
		own = append(own, m.key)
	}
	if _, builtin := builtinProfile(p.Profile); builtin || slices.Contains(own, p.Profile) {
		return
	}
	r.add(root.get("profile").at, "profile", mistake.InvalidValue, fmt.Sprintf("there is no profile %q", clip(p.Profile)),
		knownProfiles(p.Profile, own))
}

// knownProfiles returns a fix that suggests a name for a wrong one.
func knownProfiles(wrong string, own []string) string {
	known := profileNames(BuiltinProfiles())
	for _, name := range own {
		if toolName.MatchString(name) && !slices.Contains(known, name) {
			known = append(known, name)
		}
	}
	slices.Sort(known)
	return choiceFix(wrong, known)
}

// builtinProfile returns the profile of a name that is not a policy's. The empty name means standard.
func builtinProfile(name string) (p Profile, known bool) {
	var none *Policy
	p, err := none.ProfileNamed(name)
	return p, err == nil
}
