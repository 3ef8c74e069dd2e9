package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const maxPause = time.Minute // for which a server is waited for

// waiter waits for so long, or until ctx has ended.
type waiter func(ctx context.Context, pause time.Duration) error

func wait(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// busyError says that the server has no time now.
type busyError struct {
	failure
	after time.Duration // that it asks to wait; negative: it does not say
}

func (b *busyError) Unwrap() error { return &b.failure }

// pause returns for how long to wait after so many attempts.
func (b *busyError) pause(attempt int) time.Duration {
	if b.after >= 0 {
		return b.after
	}
	return time.Second << (attempt - 1)
}

// refused reads an answer that is an error.
func (e *endpoint) refused(response *http.Response) error {
	text := fmt.Sprintf("the model's server says %s", response.Status)
	if said := e.said(response.Body); said != "" {
		text += ": " + said
	}
	known := failed(exitFailed, text)
	switch status := response.StatusCode; {
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		known.code, known.hints = exitLimit, []string{"try again later"}
		if after := retryAfter(response.Header.Get("Retry-After"), time.Now()); after <= maxPause {
			return &busyError{*known, after}
		}
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		known.hints = []string{"see to it that the variable that --api-key-env names holds a key for this API"}
	case status == http.StatusNotFound:
		known.hints = []string{"--base-url ends before /chat/completions, often with /v1; --model names a model that the server has"}
	case status >= 300 && status < 400:
		known.text = fmt.Sprintf("the model's server points elsewhere (%s), where nothing is sent", response.Status)
		known.hints = []string{"give the address that it points to in --base-url, if you trust it"}
	}
	return known
}

// said returns what a server says of an error. Some repeat the key.
func (e *endpoint) said(body io.Reader) string {
	document, _ := io.ReadAll(io.LimitReader(body, maxRefusal))
	var wire struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	text := string(document)
	if json.Unmarshal(document, &wire) == nil && wire.Error.Message != "" {
		text = wire.Error.Message
	}
	return oneLine(e.redact(text), 300)
}

// redact takes the key out of a text.
func (e *endpoint) redact(text string) string {
	if e.key == "" {
		return text
	}
	return strings.ReplaceAll(text, e.key, "[API key]")
}

// retryAfter reads the header: seconds or a date (RFC 9110, section 10.2.3). It is negative where
// the server does not say.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(0, at.Sub(now))
	}
	return -1
}

// unreachable words why there is no answer.
func (e *endpoint) unreachable(err error) error {
	var asked *url.Error // its text has the whole URL
	if errors.As(err, &asked) {
		err = asked.Err
	}
	return &failure{exitFailed, e.redact("the model's server cannot be reached: " + err.Error()), []string{"see to it that --base-url is right and that the server runs"}, err}
}

// brokenOff words why an answer is not whole.
func (e *endpoint) brokenOff(err error) error {
	text := "the model's answer cannot be read: " + err.Error()
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		text = fmt.Sprintf("the model's answer is larger than %d bytes", large.Limit)
	}
	return &failure{exitFailed, e.redact(text), nil, err}
}

// ended returns the error, but where it only follows from what ended the request: the caller, or a
// bound of ours.
func ended(caller, request context.Context, err error) error {
	switch {
	case caller.Err() != nil:
		return caller.Err()
	case request.Err() != nil:
		return &failure{exitLimit, context.Cause(request).Error(), nil, fmt.Errorf("%w: %w", context.DeadlineExceeded, err)}
	}
	return err
}
