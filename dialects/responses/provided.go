package responses

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/internal/jsontext/decode"
	"github.com/caisson-run/caisson/tool"
)

// provided collects the items of the provider's own tools. The zero value is empty.
type provided struct {
	once  bool // whether items may come again, as at the end of a stream
	found []placedItem
	known map[string]bool // the types of the items found, with their ids or else indexes
	ended map[string]bool // the call ids of the calls with an output
}

// placedItem is an item with its index in the output.
type placedItem struct {
	tool.ProviderItem
	index int64
}

// aboutItem has the members, of items of all types, that tell whether an item waits for the client.
type aboutItem struct {
	ID          string `json:"id"`
	CallID      string `json:"call_id"`
	Execution   string `json:"execution"`
	Environment struct {
		Type string `json:"type"`
	} `json:"environment"`
}

// add adds an item, unless it is reasoning, or came before. It returns whether it added the item.
func (p *provided) add(i *item, index int64) bool {
	if i.Type == reasoningItem {
		return false
	}
	var about aboutItem
	_ = decode.Unmarshal(i.written, &about) // members of other types have other forms, and say nothing here
	key := i.Type + " " + about.ID
	if about.ID == "" {
		key = i.Type + "#" + strconv.FormatInt(index, 10)
	}
	if p.once && p.known[key] {
		return false
	}
	if p.known == nil {
		p.known, p.ended = map[string]bool{}, map[string]bool{}
	}
	p.known[key] = true
	if i.Type == "shell_call_output" || i.Type == "apply_patch_call_output" {
		p.ended[about.CallID] = true
	}
	p.found = append(p.found, placedItem{tool.ProviderItem{Type: i.Type, ID: cmp.Or(about.CallID, about.ID),
		Waiting: isWaiting(i.Type, &about), Data: wire.Compact(i.written)}, index})
	return true
}

// isWaiting returns whether the provider waits for the client to run the tool, or to decide about it.
func isWaiting(kind string, about *aboutItem) bool {
	switch kind {
	case "computer_call", "apply_patch_call", approvalRequest:
		return true
	case "shell_call":
		return about.Environment.Type == "" || about.Environment.Type == "local" // other environments are the provider's
	case "tool_search_call":
		return about.Execution == "client"
	}
	return false
}

// items returns the items in the order of the output. A call whose output is there does not wait.
func (p *provided) items() []tool.ProviderItem {
	var all []tool.ProviderItem
	for _, item := range slices.SortedStableFunc(slices.Values(p.found),
		func(a, b placedItem) int { return cmp.Compare(a.index, b.index) }) {
		item.Waiting = item.Waiting && !p.ended[item.ID]
		all = append(all, item.ProviderItem)
	}
	return all
}
