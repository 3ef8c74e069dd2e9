package caisson

import "github.com/caisson-run/caisson/registry"

// Catalogue returns what a settings page shows: each tool with its label and description for people,
// whether an agent may call it, whether it is available and why not, and what it asks for and gets.
// allowed names the agent's tools; nil allows all. The definitions for the agent's model are the
// catalogue's; see [registry.Catalogue.Definitions].
func (h *Host) Catalogue(allowed []string) registry.Catalogue { return h.registry.Catalogue(allowed) }
