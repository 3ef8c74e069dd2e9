package rest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/server/internal/memory"
	"github.com/caisson-run/caisson/server/internal/standing"
	"github.com/caisson-run/caisson/tool"
)

// createCall makes one call.
func (x *exchange) createCall() (reply, error) {
	asked, err := x.callRequest(x.api.host.Registry())
	if err != nil {
		return reply{}, err
	}
	report, done, err := x.execute(&asked)
	if err != nil {
		return reply{}, err
	}
	if report.Status == executor.RequiresAction {
		return x.paused(&asked, report, done)
	}
	done()
	if r := report.Records[0]; r.Skipped && r.Unrecorded && r.Result.Kind == tool.Busy {
		return reply{}, errUnrecordable
	}
	return x.acted(func() (reply, error) {
		body, err := report.Records[0].MarshalJSON()
		return reply{status: http.StatusOK, body: body}, err
	})
}

// errUnrecordable refuses a call that could not be recorded, and was not run.
var errUnrecordable = &refusal{status: http.StatusServiceUnavailable,
	detail: "calls that are not read-only cannot be recorded now, and are not run; try again later",
	header: [2]string{"Retry-After", "5"}}

// acted makes the answer to a request that has had its effect. A repetition of the request is given the same answer,
// and must not act again, whatever becomes of this one. A caller who may no longer act by then gets none.
func (x *exchange) acted(makeReply func() (reply, error)) (reply, error) {
	x.begun = func() (reply, error) { return x.make(context.WithoutCancel(x.request.Context()), makeReply) }
	ctx, cancel := x.untilLate()
	defer cancel()
	r, err := x.made(ctx, makeReply)
	if err == nil {
		err = standing.Check(x.request.Context())
	}
	return r, err
}

// lateAnswer is the time for which the server continues to make the answer to a request that has had its effect, after
// the request has ended. Its client has disconnected, or its calls were cancelled and it waits to be told.
const lateAnswer = 2 * time.Second

// untilLate returns a context that ends a little after that of the request, or with it if the caller may no longer act.
func (x *exchange) untilLate() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(x.request.Context()))
	stop := context.AfterFunc(x.request.Context(), func() {
		if standing.IsEnd(context.Cause(x.request.Context())) {
			cancel()
			return
		}
		late := time.NewTimer(lateAnswer)
		defer late.Stop()
		select {
		case <-late.C:
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		stop()
		cancel()
	}
}

// execute runs a batch within the request, so that it ends with its client. done must be called, if there is no error,
// when the session is not needed any more.
func (x *exchange) execute(asked *batchRequest) (report executor.Report, done func(), err error) {
	session, done, err := x.session(asked.session)
	if err != nil {
		return report, nil, err
	}
	asked.batch.Session = session
	if err := x.reserveRecords(asked); err != nil {
		done()
		return report, nil, err
	}
	if report, err = x.api.host.Execute(x.request.Context(), asked.batch); err != nil {
		done()
		return report, nil, err
	}
	return report, done, nil
}

// reserveRecords waits a little until there is room for the records of a batch. Nothing has had an effect yet, so the
// request can be refused.
func (x *exchange) reserveRecords(asked *batchRequest) error {
	ctx, cancel := context.WithTimeout(x.request.Context(), maxWait)
	defer cancel()
	return memory.Reserve(ctx, len(asked.batch.Calls)*recordBytes)
}

// paused makes a run of a batch that has to wait.
func (x *exchange) paused(asked *batchRequest, report executor.Report, done func()) (reply, error) {
	run, err := x.api.runs.add(x, asked, done)
	if err != nil {
		done()
		return reply{}, err
	}
	run.settle(report, nil, nil)
	return x.answerRun(run, http.StatusAccepted)
}

// createBatch runs a batch within the request.
func (x *exchange) createBatch() (reply, error) {
	asked, err := x.batchRequest()
	if err != nil {
		return reply{}, err
	}
	if x.wantsEvents() {
		return x.streamBatch(&asked)
	}
	report, done, err := x.execute(&asked)
	if err != nil {
		return reply{}, err
	}
	return x.answerReport(&asked, report, done)
}

// answerReport is the answer to a batch that has ended or paused.
func (x *exchange) answerReport(asked *batchRequest, report executor.Report, done func()) (reply, error) {
	if report.Status == executor.RequiresAction {
		waits, err := x.paused(asked, report, done)
		var refused *refusal
		if !errors.As(err, &refused) {
			return waits, err
		}
		given := describeBatch(asked, report) // some calls may have run
		given.Status, given.Problem, given.Pending = failed, "what waits was given up: "+refused.detail, []tool.Action{}
		return x.acted(func() (reply, error) { return answer(http.StatusOK, given) })
	}
	defer done()
	return x.acted(func() (reply, error) { return answer(http.StatusOK, describeBatch(asked, report)) })
}

// describeBatch describes a batch that has ended within its request. It has no times, since nothing of it is kept.
func describeBatch(asked *batchRequest, report executor.Report) runDocument {
	d := runDocument{ID: report.ID, Status: completed, Session: asked.session}
	d.report(report, asked.dialect)
	return d
}

// streamBatch runs a batch within the request and shows its events. The last event is the report.
func (x *exchange) streamBatch(asked *batchRequest) (reply, error) {
	session, done, err := x.session(asked.session)
	if err != nil {
		return reply{}, err
	}
	asked.batch.Session = session
	if err := x.reserveRecords(asked); err != nil {
		done()
		return reply{}, err
	}
	stream := x.newEvents()
	defer stream.end()
	stream.room = len(asked.batch.Calls) * recordBytes
	report, err := x.api.host.Stream(x.request.Context(), asked.batch, func(event tool.Event) bool {
		data, err := json.Marshal(event)
		return err == nil && stream.send(string(event.Type), data)
	})
	if err != nil {
		done()
		if !stream.begun() {
			x.streams = false
			return reply{}, err
		}
		stream.fail(x.refusalOf(err).problem)
		return reply{streamed: true}, nil
	}
	whole, err := x.answerReport(asked, report, done)
	if err != nil {
		stream.fail(x.refusalOf(err).problem)
		return reply{streamed: true}, nil
	}
	stream.room = len(whole.body) // it is counted
	stream.send("report", whole.body)
	whole.streamed = true
	return whole, nil
}
