package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caisson-run/caisson/dialects/mcp"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/tool"
)

type nameKey struct{}

// named has the SDK handle a call under the tool's registered name: it knows no aliases. The executor gets the
// name as the client wrote it.
func (s *Server) named(
	ctx context.Context, method string, request *sdk.CallToolRequest, next sdk.MethodHandler,
) (sdk.Result, error) {
	requested := request.Params.Name
	ctx = context.WithValue(ctx, nameKey{}, requested)
	entry, ok := s.host.Registry().Get(requested)
	if !ok {
		return s.call(ctx, request) // the answer names tools with a similar name
	}
	if _, ok := s.tools.offered(entry.Name); !ok {
		return nil, refused(fmt.Sprintf("the tool %q is not offered over MCP", tool.Shown(requested, 64)))
	}
	request.Params.Name = entry.Name
	lasts, end := context.WithCancelCause(ctx)
	defer end(nil)
	open := openQuestion{end: end}
	result, err := next(context.WithValue(lasts, questionKey{}, &open), method, request)
	if err != nil && open.asked != nil {
		return s.unanswered(ctx, context.Cause(lasts), request, open.asked)
	}
	return result, err
}

type questionKey struct{}

// openQuestion is what the client of an earlier revision is asked while its call lasts.
type openQuestion struct {
	asked *sdk.CallToolResult     // nil once it was answered
	end   context.CancelCauseFunc // ends the call
}

// unanswered ends a call whose client was asked and sent something else than an answer: an error, or a value of
// another form. It counts as no answer of the user's, not as a failure of the server, and the client's text is dropped.
// If the question was given up, ended says why.
func (s *Server) unanswered(
	ctx context.Context, ended error, request *sdk.CallToolRequest, asked *sdk.CallToolResult,
) (sdk.Result, error) {
	switch {
	case errors.Is(ended, errClosed):
		return nil, errBeingStopped
	case errors.Is(ended, errForgotten), errors.Is(ended, errNoSession):
		return nil, refused(ended.Error())
	case ctx.Err() != nil:
		if by, err := s.by(ctx, request.Session, request.Extra); err == nil {
			s.waiting.take(by.key, asked.RequestState)
		}
		return nil, refused("the client disconnected before its user answered")
	}
	params := *request.Params
	params.RequestState, params.InputResponses = asked.RequestState, sdk.InputResponseMap{}
	for id := range asked.InputRequests {
		params.InputResponses[id] = &sdk.ElicitResult{Action: "cancel"}
	}
	again := *request
	again.Params = &params
	return s.call(ctx, &again)
}

// call answers tools/call.
func (s *Server) call(ctx context.Context, request *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	if open, ok := ctx.Value(questionKey{}).(*openQuestion); ok {
		open.asked = nil
	}
	by, err := s.by(ctx, request.Session, request.Extra)
	if err != nil {
		return nil, err
	}
	if !by.may(auth.Call) {
		return writeRecord(refusal(tool.Denied, `the token does not have the scope "call"`))
	}
	session, done, err := by.session(ctx)
	if err != nil {
		return nil, s.failed(ctx, "tools/call", err)
	}
	defer done()
	running, end, err := s.calls.begin(ctx, by)
	if err != nil {
		return nil, errBeingStopped
	}
	defer end()

	name, ok := ctx.Value(nameKey{}).(string)
	if !ok {
		name = request.Params.Name
	}
	c := conversation{by, session, request, name}
	var report executor.Report
	if request.Params.RequestState != "" {
		var again *sdk.CallToolResult
		if report, again, err = s.resume(running, &c); again != nil {
			return again, nil
		}
	} else {
		call := tool.Call{ID: callID, Type: tool.FunctionCall,
			Function: tool.Function{Name: name, Arguments: argumentsOf(request)}}
		report, err = s.host.Stream(running, executor.Batch{Session: session, Calls: []tool.Call{call}},
			c.progress(running).show)
	}
	if _, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return nil, err
	}
	if err != nil {
		return nil, s.failed(ctx, "tools/call", err)
	}
	if report.Status == executor.RequiresAction {
		return s.ask(ctx, &c, report)
	}
	record := report.Records[0]
	if record.Result.Kind == tool.Internal {
		s.failures.ErrorContext(ctx, "a call failed", "call_id", record.CallID, "tool", record.Function.Name)
	}
	size := record.Result.Size() + len(record.Result.Data)
	at, restores := s.droppedData(&record)
	if restores {
		size += int(record.Cuts[at].Bytes)
	}
	if err := by.reserve(copies * size); err != nil {
		return nil, err
	}
	if restores {
		restore(&record, session, at)
	}
	return writeRecord(record)
}

// errBeingStopped is the answer to a call that the server has no time for.
var errBeingStopped = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the server is being stopped"}

// copies is the number of copies of a result that are in memory while its answer is made.
const copies = 3

// droppedData returns the cut with the data that the executor dropped from a result because it is long, if the tool has
// a schema of results: clients refuse a result without structured content then.
func (s *Server) droppedData(record *tool.Record) (cut int, ok bool) {
	entry, ok := s.host.Registry().Get(record.Function.Name)
	if !ok || !record.Result.Success || len(record.Result.Data) > 0 {
		return 0, false
	}
	if offered, ok := s.tools.offered(entry.Name); !ok || offered.OutputSchema == nil {
		return 0, false
	}
	cut = slices.IndexFunc(record.Cuts, func(cut tool.Cut) bool { return cut.Part == "data" })
	return cut, cut >= 0 // otherwise the tool had none
}

// restore puts dropped data back. Data that is not kept cannot be, which makes the result a failure.
func restore(record *tool.Record, session *executor.Session, at int) {
	page, err := session.Page(record.Cuts[at].Reference, 0, record.Cuts[at].Bytes)
	if err != nil || !json.Valid([]byte(page.Text)) {
		record.Result.Success, record.Result.Kind = false, tool.Output
		record.Result.Error = fmt.Sprintf("the data of the result has %d bytes, which are too many to be kept",
			record.Cuts[at].Bytes)
		return
	}
	record.Result.Data = json.RawMessage(page.Text)
	record.Cuts = slices.Delete(slices.Clone(record.Cuts), at, at+1)
}

// refusal returns the record of a call that was not made.
func refusal(kind tool.Kind, reason string) tool.Record {
	return tool.Record{Result: tool.Result{Error: reason, Kind: kind}}
}

// writeRecord returns a record as the dialect writes it: a result, or an error of the protocol.
func writeRecord(record tool.Record) (*sdk.CallToolResult, error) {
	record.ID = callID
	record.Result.Content = append(record.Result.Content[:len(record.Result.Content):len(record.Result.Content)],
		restLinks(record.Cuts)...)
	document, err := mcp.New().Results([]tool.Record{record})
	if err != nil {
		return nil, err
	}
	var answers []struct {
		Result json.RawMessage `json:"result"`
		Error  *jsonrpc.Error  `json:"error"`
	}
	if err := json.Unmarshal(document, &answers); err != nil {
		return nil, err
	}
	if answers[0].Error != nil {
		return nil, answers[0].Error
	}
	result := &sdk.CallToolResult{}
	var structured struct {
		Content json.RawMessage `json:"structuredContent"`
	}
	if err := json.Unmarshal(answers[0].Result, result); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(answers[0].Result, &structured); err != nil {
		return nil, err
	}
	if structured.Content != nil {
		result.StructuredContent = structured.Content // with all digits
	}
	return result, nil
}

// restLinks returns links to the parts that were cut from a result.
func restLinks(cuts []tool.Cut) []tool.Content {
	var links []tool.Content
	for _, cut := range cuts {
		if cut.Reference == "" {
			continue // it is not kept
		}
		links = append(links, tool.Content{
			Type: "link", URL: outputURI(cut.Reference, cut.Kept), Name: "rest of the " + cut.Part, MIMEType: "text/plain",
			Text: fmt.Sprintf("The result was cut because it is long: bytes %d to %d of the %s.", cut.Kept, cut.Bytes, cut.Part),
		})
	}
	return links
}

// outputURI returns the URI of a result from a byte on.
func outputURI(reference string, from int64) string {
	return outputs + url.PathEscape(reference) + fmt.Sprintf("?from=%d", from)
}

const outputs = "caisson://output/"

// outputTemplate describes the resources that are results.
var outputTemplate = &sdk.ResourceTemplate{
	URITemplate: outputs + "{reference}{?from,bytes}",
	Name:        "output", Title: "Rest of a result",
	Description: "A result of this session that was cut because it is long, from the byte \"from\" on, at most " +
		"\"bytes\" bytes. The link in the result has the reference.",
	MIMEType: "text/plain",
}

// pageBytes is the number of bytes of a result in one answer, unless the client asks for another.
const pageBytes = 256 << 10

// readOutput answers resources/read with a page of a result that was cut. The session of the executor has only its
// own.
func (s *Server) readOutput(ctx context.Context, request *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	by, err := s.by(ctx, request.Session, request.Extra)
	if err != nil {
		return nil, err
	}
	if !by.may(auth.Call) {
		return nil, refused(`the token does not have the scope "call"`)
	}
	reference, from, most, err := parseOutput(request.Params.URI)
	if err != nil {
		return nil, refused(err.Error())
	}
	session, done, err := by.found(ctx)
	if err != nil {
		return nil, s.failed(ctx, "resources/read", err)
	}
	defer done()
	if session == nil {
		return nil, refused("the session has no results")
	}
	if err := by.reserve(copies * int(most)); err != nil {
		return nil, err
	}
	page, err := session.Page(reference, from, most)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()} // for the reader of the next page
	}
	contents := &sdk.ResourceContents{URI: request.Params.URI, MIMEType: "text/plain", Text: page.Text,
		Meta: sdk.Meta{metaTotal: page.Total}}
	if page.Next >= 0 {
		contents.Meta[metaNext] = outputURI(reference, page.Next)
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{contents}}, nil
}

// What a page says in its _meta: how many bytes the whole has, and the URI of the next page if there is one.
const (
	metaTotal = "caisson/total"
	metaNext  = "caisson/next"
)

// parseOutput reads the URI of a page.
func parseOutput(uri string) (reference string, from, most int64, err error) {
	parsed, err := url.Parse(uri)
	if err != nil || !strings.HasPrefix(uri, outputs) {
		return "", 0, 0, errors.New("the URI is not of the form " + outputTemplate.URITemplate)
	}
	query, most := parsed.Query(), int64(pageBytes)
	for name, field := range map[string]*int64{"from": &from, "bytes": &most} {
		if text := query.Get(name); text != "" {
			if _, err := fmt.Sscanf(text, "%d", field); err != nil || fmt.Sprint(*field) != text || *field < 0 {
				return "", 0, 0, fmt.Errorf("%s is %q; want a whole number", name, tool.Shown(text, 32))
			}
		}
	}
	return strings.TrimPrefix(parsed.Path, "/"), from, min(most, 1<<20), nil
}
