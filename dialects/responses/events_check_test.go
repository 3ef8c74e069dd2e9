package responses

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/dialects"
)

// transcript checks events against the API's reference, independently of the code that wrote them.
// Events are checked one by one; the first fault stays.
type transcript struct {
	sequence int
	over     bool
	items    []*trackedItem
	byID     map[string]bool
	fault    error
}

// trackedItem is an item of a response with its history.
type trackedItem struct {
	id, kind string
	steps    string // one word for each event about it, each followed by a space
	text     string // of the deltas since the last whole
	parts    int
	partials int
	last     map[string]any // as output_item.done has it
}

// members are those that the reference requires of each event, in addition to type and sequence_number.
var members = map[string][]string{
	"error":                                        {"code", "message", "param"},
	"response.created":                             {"response"},
	"response.in_progress":                         {"response"},
	"response.completed":                           {"response"},
	"response.failed":                              {"response"},
	"response.output_item.added":                   {"output_index", "item"},
	"response.output_item.done":                    {"output_index", "item"},
	"response.content_part.added":                  {"item_id", "output_index", "content_index", "part"},
	"response.content_part.done":                   {"item_id", "output_index", "content_index", "part"},
	"response.output_text.delta":                   {"item_id", "output_index", "content_index", "delta", "logprobs"},
	"response.output_text.done":                    {"item_id", "output_index", "content_index", "text", "logprobs"},
	"response.function_call_arguments.delta":       {"item_id", "output_index", "delta"},
	"response.function_call_arguments.done":        {"item_id", "output_index", "arguments"},
	"response.custom_tool_call_input.delta":        {"item_id", "output_index", "delta"},
	"response.custom_tool_call_input.done":         {"item_id", "output_index", "input"},
	"response.mcp_call_arguments.delta":            {"item_id", "output_index", "delta"},
	"response.mcp_call_arguments.done":             {"item_id", "output_index", "arguments"},
	"response.mcp_call.in_progress":                {"item_id", "output_index"},
	"response.mcp_call.completed":                  {"item_id", "output_index"},
	"response.mcp_call.failed":                     {"item_id", "output_index"},
	"response.web_search_call.in_progress":         {"item_id", "output_index"},
	"response.web_search_call.searching":           {"item_id", "output_index"},
	"response.web_search_call.completed":           {"item_id", "output_index"},
	"response.file_search_call.in_progress":        {"item_id", "output_index"},
	"response.file_search_call.searching":          {"item_id", "output_index"},
	"response.file_search_call.completed":          {"item_id", "output_index"},
	"response.image_generation_call.in_progress":   {"item_id", "output_index"},
	"response.image_generation_call.generating":    {"item_id", "output_index"},
	"response.image_generation_call.partial_image": {"item_id", "output_index", "partial_image_index", "partial_image_b64", "output_format?"},
	"response.image_generation_call.completed":     {"item_id", "output_index"},
}

// itemMembers are those of each item, in addition to id and type; those with a mark may be missing.
var itemMembers = map[string][]string{
	"message":               {"status", "role", "content"},
	"function_call":         {"status", "arguments", "call_id", "name"},
	"custom_tool_call":      {"call_id", "input", "name"},
	"local_shell_call":      {"status", "call_id", "action"},
	"mcp_approval_request":  {"arguments", "name", "server_label"},
	"mcp_call":              {"status", "arguments", "name", "server_label", "approval_request_id", "error", "output"},
	"web_search_call":       {"status", "action"},
	"file_search_call":      {"status", "queries", "results"},
	"image_generation_call": {"status", "result", "output_format?"},
}

// lives are the orders of events from output_item.added to output_item.done, and the statuses with
// which they end.
var lives = map[string]map[string]*regexp.Regexp{
	"message":              {"completed": spoken, "incomplete": spoken},
	"function_call":        {"completed": regexp.MustCompile(`^(function_call_arguments\.delta )*function_call_arguments\.done $`)},
	"custom_tool_call":     {"": regexp.MustCompile(`^(custom_tool_call_input\.delta )*custom_tool_call_input\.done $`)},
	"local_shell_call":     {"completed": regexp.MustCompile(`^$`)},
	"mcp_approval_request": {"": regexp.MustCompile(`^$`)},
	"mcp_call": {
		"completed": regexp.MustCompile(`^mcp_call\.in_progress (mcp_call_arguments\.delta )*mcp_call_arguments\.done mcp_call\.completed $`),
		"failed":    regexp.MustCompile(`^mcp_call\.in_progress (mcp_call_arguments\.delta )*mcp_call_arguments\.done mcp_call\.failed $`),
	},
	"web_search_call": {
		"completed": regexp.MustCompile(`^web_search_call\.in_progress web_search_call\.searching web_search_call\.completed $`),
		"failed":    regexp.MustCompile(`^web_search_call\.in_progress (web_search_call\.searching )?$`),
	},
	"file_search_call": {
		"completed": regexp.MustCompile(`^file_search_call\.in_progress file_search_call\.searching file_search_call\.completed $`),
		"failed":    regexp.MustCompile(`^file_search_call\.in_progress (file_search_call\.searching )?$`),
	},
	"image_generation_call": {
		"completed": regexp.MustCompile(`^in_progress generating (partial_image )*completed $`),
		"failed":    regexp.MustCompile(`^in_progress (generating (partial_image )*)?$`),
	},
}

var spoken = regexp.MustCompile(`^(content_part\.added (output_text\.delta )+output_text\.done content_part\.done )+$`)

// prefixes are those of the ids of items.
var prefixes = map[string]string{
	"message": "msg_", "function_call": "fc_", "custom_tool_call": "ctc_", "local_shell_call": "lsh_", "mcp_approval_request": "mcpr_",
	"mcp_call": "mcp_", "web_search_call": "ws_", "file_search_call": "fs_", "image_generation_call": "ig_",
}

func (t *transcript) failf(format string, arguments ...any) {
	if t.fault == nil {
		t.fault = fmt.Errorf(format, arguments...)
	}
}

// checked returns the first fault of a stream's events, or nil. If whole is set, the stream must have an end.
func checked(events []dialects.Event, whole bool) error {
	t := transcript{byID: map[string]bool{}}
	for _, event := range events {
		if t.event(event); t.fault != nil {
			return fmt.Errorf("%s %s: %w", event.Name, event.Data, t.fault)
		}
	}
	if whole && !t.over {
		return fmt.Errorf("the stream has no end")
	}
	return nil
}

func (t *transcript) event(event dialects.Event) {
	var body map[string]any
	if err := json.Unmarshal(event.Data, &body); err != nil {
		t.failf("not JSON: %w", err)
		return
	}
	if body["type"] != event.Name {
		t.failf("the type is not the name")
	}
	if body["sequence_number"] != float64(t.sequence) {
		t.failf("the sequence number is not %d", t.sequence)
	}
	t.sequence++
	wanted, known := members[event.Name]
	if !known {
		t.failf("no such event")
	}
	t.exactly(body, append([]string{"type", "sequence_number"}, wanted...))
	if t.over {
		t.failf("comes after the end")
	}
	if t.fault != nil {
		return
	}
	switch name := strings.TrimPrefix(event.Name, "response."); name {
	case "error":
		t.over = true
	case "created", "in_progress":
		t.begins(name, body["response"].(map[string]any))
	case "completed", "failed":
		t.ends(name, body["response"].(map[string]any))
	case "output_item.added":
		t.added(body)
	case "output_item.done":
		t.done(body)
	default:
		t.about(name, body)
	}
}

// exactly checks that an object has the given members, of which those with a mark may be missing, and no other ones.
func (t *transcript) exactly(object map[string]any, wanted []string) {
	for _, name := range wanted {
		if _, ok := object[name]; !ok && !strings.HasSuffix(name, "?") {
			t.failf("%s is missing", name)
		}
	}
	for name := range object {
		if !slices.Contains(wanted, name) && !slices.Contains(wanted, name+"?") {
			t.failf("%s is a stranger", name)
		}
	}
}

func (t *transcript) begins(name string, response map[string]any) {
	if at := slices.Index([]string{"created", "in_progress"}, name); at != t.sequence-1 {
		t.failf("is out of order")
	}
	if response["status"] != "in_progress" || len(response["output"].([]any)) != 0 {
		t.failf("the response has begun already")
	}
	t.response(response)
}

func (t *transcript) response(response map[string]any) {
	for _, name := range []string{
		"id", "object", "created_at", "status", "error", "incomplete_details", "instructions", "model", "output", "parallel_tool_calls",
		"temperature", "tool_choice", "tools", "top_p", "metadata", "previous_response_id", "usage",
	} {
		if _, ok := response[name]; !ok {
			t.failf("the response has no %s", name)
		}
	}
	if response["object"] != "response" || response["id"] == "" {
		t.failf("the response is none")
	}
}

// ends checks that the response repeats the items as they were done.
func (t *transcript) ends(name string, response map[string]any) {
	t.over = true
	t.response(response)
	if t.sequence < 3 {
		t.failf("the response has not begun")
	}
	if response["status"] != name || (response["error"] == nil) != (name == "completed") {
		t.failf("the status is %v, the error %v", response["status"], response["error"])
	}
	output := response["output"].([]any)
	if len(output) != len(t.items) {
		t.failf("the response has %d items of %d", len(output), len(t.items))
		return
	}
	for i, item := range t.items {
		if item.last == nil && name == "completed" {
			t.failf("item %d is not done", i)
		} else if item.last != nil && fmt.Sprint(item.last) != fmt.Sprint(output[i]) {
			t.failf("item %d is not as it was", i)
		}
	}
}

func (t *transcript) added(body map[string]any) {
	item := body["item"].(map[string]any)
	kind, _ := item["type"].(string)
	id, _ := item["id"].(string)
	if body["output_index"] != float64(len(t.items)) {
		t.failf("the index is not %d", len(t.items))
	}
	if t.sequence < 3 || id == "" || t.byID[id] {
		t.failf("the item is out of order or has no id of its own")
	}
	if prefix, ok := prefixes[kind]; !ok || !strings.HasPrefix(id, prefix) {
		t.failf("the id does not begin as those of %s", kind)
	}
	if status, ok := item["status"]; ok && status != "in_progress" {
		t.failf("the item begins with the status %v", status)
	}
	t.exactly(item, append([]string{"id", "type"}, itemMembers[kind]...))
	t.byID[id] = true
	t.items = append(t.items, &trackedItem{id: id, kind: kind})
}

// find returns the item that an event is about.
func (t *transcript) find(body map[string]any, id any) *trackedItem {
	index, ok := body["output_index"].(float64)
	if !ok || int(index) >= len(t.items) || t.items[int(index)].id != id {
		t.failf("is about no item that was added")
		return nil
	}
	item := t.items[int(index)]
	if item.last != nil {
		t.failf("is about an item that is done")
		return nil
	}
	return item
}

func (t *transcript) done(body map[string]any) {
	item := body["item"].(map[string]any)
	tracked := t.find(body, item["id"])
	if tracked == nil {
		return
	}
	status, _ := item["status"].(string)
	life := lives[tracked.kind][status]
	switch {
	case item["type"] != tracked.kind:
		t.failf("the item has become another")
	case life == nil:
		t.failf("the item ends with the status %q", status)
	case !life.MatchString(tracked.steps):
		t.failf("the item's events are %q", tracked.steps)
	}
	t.exactly(item, append([]string{"id", "type"}, itemMembers[tracked.kind]...))
	for _, whole := range []string{"arguments", "input"} {
		if text, ok := item[whole]; ok && tracked.kind != "mcp_approval_request" && text != tracked.text {
			t.failf("%s is %q, and in pieces %q", whole, text, tracked.text)
		}
	}
	if content, ok := item["content"].([]any); ok && len(content) != tracked.parts {
		t.failf("the message has %d parts of %d", len(content), tracked.parts)
	}
	tracked.last = item
}

// about takes an event about an item.
func (t *transcript) about(name string, body map[string]any) {
	item := t.find(body, body["item_id"])
	if item == nil {
		return
	}
	item.steps += strings.TrimPrefix(name, "image_generation_call.") + " "
	if index, ok := body["content_index"]; ok && index != float64(item.parts) {
		t.failf("the content index is not %d", item.parts)
	}
	switch {
	case name == "image_generation_call.partial_image":
		if body["partial_image_index"] != float64(item.partials) || body["partial_image_b64"] == "" {
			t.failf("the image's index is not %d", item.partials)
		}
		item.partials++
	case name == "content_part.added":
		item.text = ""
	case name == "content_part.done":
		item.parts++
		if part := body["part"].(map[string]any); part["text"] != item.text || part["type"] != "output_text" {
			t.failf("the part is %v, and in pieces %q", part, item.text)
		}
	case strings.HasSuffix(name, ".delta"):
		item.text += body["delta"].(string)
	case strings.HasSuffix(name, ".done"):
		for _, whole := range []string{"arguments", "input", "text"} {
			if text, ok := body[whole]; ok && text != item.text {
				t.failf("%s is %q, and in pieces %q", whole, text, item.text)
			}
		}
	}
}
