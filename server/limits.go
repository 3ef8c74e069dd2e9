package server

import (
	"cmp"
	"fmt"
	"time"
)

// Limits bounds what callers may use. Zero means the default; negative is an error.
type Limits struct {
	// BodyBytes is for one request; 16 MiB. The bodies of a tenant's open requests have four times as many, and so have
	// their answers; those of all requests have 16 times as many.
	BodyBytes int64
	// HeaderBytes is for one request; 32 KiB.
	HeaderBytes int
	// Connections is the maximum number at a time; 1,024, and at most three quarters of the descriptors that the process
	// may have. For ten seconds after these have run out, it is fewer, but at least half. One more ends the one that has
	// had no authenticated request for longest, or waits until there is one.
	Connections int
	// Requests is the maximum number at a time of one tenant, or of one token without a tenant; a quarter of Connections,
	// so that streams that only wait block no other tenant. Callers without a token are not limited.
	Requests int
	// Rate is the requests a second of one token; 200. Callers without a token are not limited.
	Rate float64
	// Burst is the requests of one token at once, beyond Rate; 400.
	Burst int
	// Failures is the refused tokens a second of one address; 1, with a burst of 20. Tokens that work are not concerned.
	Failures float64
	// Header is the time to send the header; 10 s.
	Header time.Duration
	// Refusal is the time to take the whole answer to a request without a token that works; 5 s. Health checks count as
	// such.
	Refusal time.Duration
	// Body is the time to send the body; 60 s. A handler that answers before it has read the body waits for 1 s of it.
	Body time.Duration
	// Stall is the time in which a client takes the next 16 KiB of an answer; 30 s. Since the system may wait until it has
	// taken a third of the bytes that the system holds, clients that are slower than 16 KiB a second may not get it whole.
	Stall time.Duration
	// Idle is the time between the requests of a connection; 2 min.
	Idle time.Duration
	// Drain is the time for requests to end when the server stops, before their calls are cancelled; 20 s.
	Drain time.Duration
}

const defaultConnections = 1024

// maxConnections returns how many connections may be held at most: a quarter of the descriptors is for what requests
// open, such as the files of tokens.
func maxConnections() int { return max(maxDescriptors()/4*3, 1) }

func (l Limits) withDefaults() (Limits, error) {
	for name, value := range map[string]float64{
		"BodyBytes": float64(l.BodyBytes), "HeaderBytes": float64(l.HeaderBytes), "Connections": float64(l.Connections),
		"Requests": float64(l.Requests), "Rate": l.Rate, "Burst": float64(l.Burst),
		"Failures": l.Failures, "Header": float64(l.Header), "Refusal": float64(l.Refusal), "Body": float64(l.Body),
		"Stall": float64(l.Stall), "Idle": float64(l.Idle), "Drain": float64(l.Drain),
	} {
		if value < 0 {
			return l, fmt.Errorf("%w: the limit %s is negative", ErrInvalidOptions, name)
		}
	}
	l.BodyBytes = cmp.Or(l.BodyBytes, 16<<20)
	l.HeaderBytes = cmp.Or(l.HeaderBytes, 32<<10)
	l.Connections = min(cmp.Or(l.Connections, defaultConnections), maxConnections())
	l.Requests = cmp.Or(l.Requests, max(l.Connections/4, 1))
	l.Rate = cmp.Or(l.Rate, 200)
	l.Burst = cmp.Or(l.Burst, 400)
	l.Failures = cmp.Or(l.Failures, 1)
	l.Header = cmp.Or(l.Header, 10*time.Second)
	l.Refusal = cmp.Or(l.Refusal, 5*time.Second)
	l.Body = cmp.Or(l.Body, time.Minute)
	l.Stall = cmp.Or(l.Stall, 30*time.Second)
	l.Idle = cmp.Or(l.Idle, 2*time.Minute)
	l.Drain = cmp.Or(l.Drain, 20*time.Second)
	return l, nil
}
