package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/caisson-run/caisson/internal/keypath"
	"github.com/caisson-run/caisson/internal/names"
	"github.com/caisson-run/caisson/internal/schema"
	"github.com/caisson-run/caisson/manifests"
)

// unusedDefaults returns a warning for each default in a tool's parameters that its own schema does not
// allow: it is never filled in.
func unusedDefaults(ctx context.Context, m *manifests.Manifest) (warnings []manifests.Problem) {
	var probe schema.Probe
	seen := map[*schema.Node]bool{}
	var visit func(n *schema.Node, path string)
	visit = func(n *schema.Node, path string) {
		if n == nil || seen[n] {
			return
		}
		seen[n] = true
		if n.Default != nil && !probe.Fits(ctx, n, string(n.Default)) {
			warnings = append(warnings, m.Problem(path+".default", unusedDefault,
				fmt.Sprintf("the default %s does not fit the schema beside it, so it is never filled in", n.Default), "write a value that the schema allows, or remove default"))
		}
		for _, name := range slices.Sorted(maps.Keys(n.Properties)) {
			visit(n.Properties[name], keypath.Key(path+".properties", name))
		}
		visit(n.Items, path+".items")
	}
	visit(m.Parameters.Structure(), "parameters")
	return warnings
}

// successors returns a warning for each deprecated tool whose successor is not among the tools, nor
// among the names that broken manifests claim. A tool that is checked alone may have its successor
// elsewhere.
func successors(tools []*manifests.Manifest, known *names.Names, broken []string) (warnings []manifests.Problem) {
	for _, m := range tools {
		if m.Deprecated == nil || m.Deprecated.Use == "" || len(tools) == 1 || known.Has(m.Deprecated.Use) || slices.Contains(broken, m.Deprecated.Use) {
			continue
		}
		fix := "correct the name, or check the manifest together with that of the tool"
		if near := known.Nearest(m.Deprecated.Use, 1); len(near) > 0 {
			fix = "did you mean " + near[0] + "?"
		}
		warnings = append(warnings, m.Problem("deprecated.use", unknownSuccessor, fmt.Sprintf("there is no tool %q here", m.Deprecated.Use), fix))
	}
	return warnings
}
