package responses_test

import (
	"fmt"
	"time"

	"github.com/caisson-run/caisson/dialects/responses"
	"github.com/caisson-run/caisson/tool"
)

func ExampleEvents() {
	events := responses.NewEvents(responses.EventsOptions{ResponseID: "resp_1"})
	for _, event := range []tool.Event{
		{Type: tool.BatchStarted, Batch: "b", Time: time.Unix(1, 0)},
		{Type: tool.BatchFinished, Batch: "b", Time: time.Unix(2, 0)},
	} {
		written, err := events.Map(event)
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, event := range written {
			fmt.Println(event.Name)
		}
	}
	// Output:
	// response.created
	// response.in_progress
	// response.completed
}
