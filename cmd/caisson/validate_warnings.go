package main

import (
	"strings"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
)

// seedWarnings points out a manifest that has its program resumed from a snapshot, although
// the program links what would then give each call the same random numbers.
func seedWarnings(m *manifests.Manifest, info runtime.ModuleInfo) []manifests.Problem {
	if m.Behavior.Snapshot != manifests.SnapshotStart || len(info.SeededGenerators) == 0 {
		return nil
	}
	const key = "behavior.snapshot"
	return []manifests.Problem{{
		File: m.File, Line: max(m.Line(key), 1), Column: 1, Path: key, Kind: repeatedSeed,
		Message: "the module links " + strings.Join(info.SeededGenerators, ", ") +
			"; what that gives repeats in calls that are resumed, if it is seeded before the program reads its input",
		Fix: "draw from a generator that is seeded after the input was read, as SNAPSHOTS.md shows for each language; or say snapshot: off",
	}}
}

// unusedWarnings points out permissions that the module has no import to use, whatever it
// does: to ask for less is to be trusted sooner.
func unusedWarnings(m *manifests.Manifest, info runtime.ModuleInfo) []manifests.Problem {
	var warnings []manifests.Problem
	for _, key := range info.Unused {
		warnings = append(warnings, manifests.Problem{
			File: m.File, Line: max(m.Line(key), 1), Column: 1, Path: key, Kind: unusedPermission,
			Message: "the manifest asks for it, and the module imports nothing to use it with",
			Fix:     "remove the permission, or build the module with what uses it",
		})
	}
	return warnings
}
