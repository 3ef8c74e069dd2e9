package manifests

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
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
