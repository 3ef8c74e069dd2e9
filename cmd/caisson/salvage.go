package main

import (
	"errors"
	"fmt"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/tool"
)

// batchFailed is the status of a batch that could not be kept or answered. Its results are the
// records of the calls that have ended.
const batchFailed executor.Status = "failed"

// salvage shows the records of the calls that have ended, whatever it is that failed then: whoever
// does not know of them would have them made again. It returns the failure, and those of the host.
func (v *view) salvage(ended done, failures *failure, err error) error {
	if v.showRecords(ended) != nil {
		v.env.printLost(ended.Records)
	}
	var known *failure
	if !errors.As(err, &known) {
		known = &failure{exitFailed, messagesOf(err)}
	}
	if failures != nil {
		known = &failure{failures.code, append(failures.messages, known.messages...)}
	}
	return known
}

// showRecords shows records in the place of what a batch came to.
func (v *view) showRecords(ended done) error {
	results, err := encoded(list(ended.Records))
	if err != nil {
		return err
	}
	whole := *v
	whole.broken, whole.dialect = nil, nil // what could not be shown or said is left out
	return whole.end(outcome{Status: batchFailed, Batch: ended.ID, Results: results}, ended.Records)
}

// printLost prints records that cannot be written where they belong. It is not held back by --quiet.
func (e environment) printLost(records []tool.Record) {
	for _, record := range records {
		if text, err := encoded(record); err == nil {
			// Nothing can be done about a stderr that fails.
			_, _ = fmt.Fprintf(e.stderr, "caisson: record: %s\n", sanitiseLine(string(text)))
		}
	}
}
