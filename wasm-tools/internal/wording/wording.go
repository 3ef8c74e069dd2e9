// Package wording explains failed requests to a model, with advice.
package wording

import (
	"errors"
	"fmt"
	"strconv"

	caisson "github.com/caisson-run/caisson/sdk/go"
)

// Failure words the error of a request. A denial is passed on unchanged, because it names the rule.
func Failure(err error) string {
	failed, ok := errors.AsType[*caisson.Error](err)
	if !ok {
		return err.Error()
	}
	switch failed.Status {
	case caisson.Deadline:
		return "there was no answer in time; it may work later"
	case caisson.Limit:
		return fmt.Sprintf("this call has used up what it may do (%s); ask for less at once", failed.Error())
	case caisson.IO, caisson.Unavailable, caisson.Invalid:
		if failed.Message != "" {
			return failed.Message
		}
	}
	return failed.Error()
}

// Status words a status other than success: "the server answered 404 Not Found; …".
func Status(response *caisson.Response) string {
	text := "the server answered " + strconv.Itoa(response.Status)
	if known, ok := statuses[response.Status]; ok {
		text += " " + known.name
		if known.advice != "" {
			text += "; " + known.advice
		}
	}
	if wait := RetryAfter(response); wait != "" {
		text += "; it asks to wait " + wait
	}
	return text
}

// RetryAfter returns how long the server asks to wait, such as "30 seconds", or "". It ignores a date
// in the header, because tools do not need to know the time.
func RetryAfter(response *caisson.Response) string {
	seconds, err := strconv.Atoi(response.Header("Retry-After"))
	switch {
	case err != nil || seconds < 0 || seconds > 7*24*60*60:
		return ""
	case seconds == 1:
		return "1 second"
	}
	return strconv.Itoa(seconds) + " seconds"
}

// statuses are the common ones. net/http has all names, but would double the size of a tool.
var statuses = map[int]struct{ name, advice string }{
	300: {"Multiple Choices", ""},
	304: {"Not Modified", ""},
	400: {"Bad Request", ""},
	401: {"Unauthorized", "it wants a login, which this tool does not have"},
	402: {"Payment Required", ""},
	403: {"Forbidden", "it does not give this page to programs, or only after a login"},
	404: {"Not Found", "check the address"},
	405: {"Method Not Allowed", ""},
	406: {"Not Acceptable", ""},
	408: {"Request Timeout", "it may work later"},
	410: {"Gone", "the page was removed"},
	413: {"Content Too Large", ""},
	414: {"URI Too Long", ""},
	422: {"Unprocessable Content", ""},
	429: {"Too Many Requests", "it may work later"},
	451: {"Unavailable For Legal Reasons", ""},
	500: {"Internal Server Error", "it may work later"},
	501: {"Not Implemented", ""},
	502: {"Bad Gateway", "it may work later"},
	503: {"Service Unavailable", "it may work later"},
	504: {"Gateway Timeout", "it may work later"},
}
