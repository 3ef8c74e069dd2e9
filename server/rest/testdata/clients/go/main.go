// Command go calls a server with the client that oapi-codegen generates, and prints its answers as JSON. It
// compiles once the generated client is beside it.
//
//	go URL TOKEN
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"slices"
	"time"

	_ "github.com/oapi-codegen/runtime" // the generated client needs it
)

const session = "go"

func main() {
	answers, err := ask(context.Background(), os.Args[1], os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		log.Fatal(err)
	}
}

// authorized returns a client that shows a token.
func authorized(url, token string) (*ClientWithResponses, error) {
	return NewClientWithResponses(url, WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+token)
		return nil
	}))
}

// object returns arguments that are an object.
func object(values map[string]any) (*Arguments, error) {
	var a Arguments
	err := a.FromArguments0(values)
	return &a, err
}

// calls returns calls of tools.
func calls(named ...NamedCall) (all []CallToMake, err error) {
	for _, one := range named {
		var c CallToMake
		if err := c.FromNamedCall(one); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// output returns the output of a call.
func output(r Record) (string, error) {
	var result Result
	if err := json.Unmarshal([]byte(r.Result), &result); err != nil {
		return "", err
	}
	if result.Output == nil {
		return "", fmt.Errorf("no output: %s", r.Result)
	}
	return *result.Output, nil
}

func outputs(records []Record) (all []string, err error) {
	for _, r := range records {
		text, err := output(r)
		if err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, nil
}

func ask(ctx context.Context, url, token string) (answers map[string]any, err error) {
	c, err := authorized(url, token)
	if err != nil {
		return nil, err
	}
	answers = map[string]any{}
	for _, step := range []func(context.Context, *ClientWithResponses, map[string]any) error{makeCall, makeBatch, makeRun,
		readPages, endSession} {
		if err := step(ctx, c, answers); err != nil {
			return nil, err
		}
	}
	stranger, err := authorized(url, "wrong")
	if err != nil {
		return nil, err
	}
	refused, err := stranger.ListCallsWithResponse(ctx, nil)
	if err != nil {
		return nil, err
	}
	answers["stranger"] = refused.ApplicationproblemJSON401.Title
	return answers, nil
}

// call makes a single call in the session.
func call(ctx context.Context, c *ClientWithResponses, name string, values map[string]any) (*Record, error) {
	arguments, err := object(values)
	if err != nil {
		return nil, err
	}
	id := session
	var request CallRequest
	if err := request.FromNamedCallRequest(NamedCallRequest{Name: name, Arguments: arguments, Session: &id}); err != nil {
		return nil, err
	}
	response, err := c.CreateCallWithResponse(ctx, nil, request)
	if err != nil {
		return nil, err
	}
	if response.JSON200 == nil {
		return nil, fmt.Errorf("%s: %s", response.Status(), response.Body)
	}
	return response.JSON200, nil
}

func makeCall(ctx context.Context, c *ClientWithResponses, answers map[string]any) error {
	record, err := call(ctx, c, "calculator", map[string]any{"expression": "6*7"})
	if err != nil {
		return err
	}
	answers["call"], err = output(*record)
	return err
}

func makeBatch(ctx context.Context, c *ClientWithResponses, answers map[string]any) error {
	first, err := object(map[string]any{"expression": "1+1"})
	if err != nil {
		return err
	}
	second, err := object(map[string]any{"expression": "2+2"})
	if err != nil {
		return err
	}
	made, err := calls(NamedCall{Name: "calculator", Arguments: first}, NamedCall{Name: "calculator", Arguments: second})
	if err != nil {
		return err
	}
	var request BatchRequest
	if err := request.FromBatchOfCalls(BatchOfCalls{Calls: made}); err != nil {
		return err
	}
	response, err := c.CreateBatchWithResponse(ctx, nil, request)
	if err != nil {
		return err
	}
	if response.JSON200 == nil {
		return fmt.Errorf("%s: %s", response.Status(), response.Body)
	}
	if answers["batch"], err = outputs(response.JSON200.Records); err != nil {
		return err
	}
	var wrong BatchRequest
	if err := wrong.FromBatchOfResponse(BatchOfResponse{Response: map[string]any{"what": 1}}); err != nil {
		return err
	}
	refused, err := c.CreateBatchWithResponse(ctx, nil, wrong)
	if err != nil {
		return err
	}
	answers["problem"] = refused.ApplicationproblemJSON422.Status
	return nil
}

func makeRun(ctx context.Context, c *ClientWithResponses, answers map[string]any) error {
	question, err := object(map[string]any{"question": "Delete it?"})
	if err != nil {
		return err
	}
	file, err := object(map[string]any{"path": "go.txt"})
	if err != nil {
		return err
	}
	made, err := calls(NamedCall{Name: "ask_user", Arguments: question}, NamedCall{Name: "file_delete", Arguments: file})
	if err != nil {
		return err
	}
	var request BatchRequest
	if err := request.FromBatchOfCalls(BatchOfCalls{Calls: made}); err != nil {
		return err
	}
	started, err := c.CreateRunWithResponse(ctx, nil, request)
	if err != nil {
		return err
	}
	if started.JSON202 == nil {
		return fmt.Errorf("%s: %s", started.Status(), started.Body)
	}
	run, err := settled(ctx, c, started.JSON202.Id)
	if err != nil {
		return err
	}
	var waited []string
	for run.Status == RunStatusRequiresAction {
		waited = append(waited, string(run.Pending[0].Type))
		if err := answer(ctx, c, run.Id, run.Pending[0]); err != nil {
			return err
		}
		if run, err = settled(ctx, c, run.Id); err != nil {
			return err
		}
	}
	slices.Sort(waited)
	answers["waited"] = waited
	answers["run"], err = outputs(run.Records)
	return err
}

// answer answers a question or approves a call.
func answer(ctx context.Context, c *ClientWithResponses, id string, action Action) error {
	if action.Type != ActionTypeToolOutput {
		return approve(ctx, c, id, action)
	}
	var one ToolOutput
	if err := one.FromTextOutput(TextOutput{ToolCallId: action.CallId, Output: "Yes."}); err != nil {
		return err
	}
	var given ToolOutputs
	if err := given.FromOutputsOfCalls(OutputsOfCalls{ToolOutputs: []ToolOutput{one}}); err != nil {
		return err
	}
	submitted, err := c.SubmitToolOutputsWithResponse(ctx, id, nil, given)
	if err != nil {
		return err
	}
	if submitted.JSON202 == nil {
		return fmt.Errorf("%s: %s", submitted.Status(), submitted.Body)
	}
	return nil
}

func approve(ctx context.Context, c *ClientWithResponses, id string, action Action) error {
	var approval Approval
	if err := approval.FromPlainApproval(PlainApproval{CallId: action.CallId, Approve: true,
		Fingerprint: action.Fingerprint}); err != nil {
		return err
	}
	approved, err := c.ApproveWithResponse(ctx, id, nil, ApprovalList{Approvals: []Approval{approval}})
	if err != nil {
		return err
	}
	if approved.JSON202 == nil {
		return fmt.Errorf("%s: %s", approved.Status(), approved.Body)
	}
	return nil
}

// settled polls a run until it waits or has ended.
func settled(ctx context.Context, c *ClientWithResponses, id string) (*Run, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		response, err := c.GetRunWithResponse(ctx, id)
		if err != nil {
			return nil, err
		}
		if response.JSON200 == nil {
			return nil, fmt.Errorf("%s: %s", response.Status(), response.Body)
		}
		if status := response.JSON200.Status; status != RunStatusQueued && status != RunStatusInProgress {
			return response.JSON200, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func readPages(ctx context.Context, c *ClientWithResponses, answers map[string]any) error {
	limit := 2
	listed, err := c.ListCallsWithResponse(ctx, &ListCallsParams{Limit: &limit})
	if err != nil {
		return err
	}
	if listed.JSON200 == nil {
		return fmt.Errorf("%s: %s", listed.Status(), listed.Body)
	}
	answers["listed"] = len(listed.JSON200.Calls)
	record, err := call(ctx, c, "file_read", map[string]any{"path": "long.txt"})
	if err != nil {
		return err
	}
	if record.Cuts == nil {
		return fmt.Errorf("nothing was cut: %s", record.Result)
	}
	var pages []int
	for from, size := 0, 50_000; from >= 0; {
		page, err := c.GetOutputWithResponse(ctx, session, (*record.Cuts)[0].Reference,
			&GetOutputParams{From: &from, Most: &size})
		if err != nil {
			return err
		}
		if page.JSON200 == nil {
			return fmt.Errorf("%s: %s", page.Status(), page.Body)
		}
		pages = append(pages, len(page.JSON200.Text))
		from = page.JSON200.Next
	}
	answers["pages"] = pages
	return nil
}

func endSession(ctx context.Context, c *ClientWithResponses, answers map[string]any) error {
	first, err := c.DeleteSessionWithResponse(ctx, session)
	if err != nil {
		return err
	}
	second, err := c.DeleteSessionWithResponse(ctx, session)
	if err != nil {
		return err
	}
	answers["session"] = []int{first.StatusCode(), second.ApplicationproblemJSON404.Status}
	return nil
}
