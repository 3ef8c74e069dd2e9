package network

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
)

// TestAttackAnswersThatTakeLongToMask: as many requests as there may be at once, whose answers are
// of the kind that takes longest to mask, end soon after their context.
func TestAttackAnswersThatTakeLongToMask(t *testing.T) {
	body := []byte(strings.Repeat("%25", 15<<20/3))
	var written sync.WaitGroup
	s := serve(t, plain, func(w http.ResponseWriter, _ *http.Request) {
		defer written.Done()
		_, _ = w.Write(body)
	})
	permission := s.permission("127.0.0.1")
	set := secretFor(t, s, "127.0.0.1", manifests.SecretPlace{Header: "X-Api-Key"})
	options := Options{Requests: []manifests.NetworkPermission{permission}, Grants: []manifests.NetworkGrant{grantOf(permission)}, Secrets: set}

	for attempt := 0; ; attempt++ {
		session := open(t, options)
		ctx, cancel := context.WithCancel(t.Context())
		written.Add(MaxInFlight)
		for range MaxInFlight {
			_, err := session.Send(ctx, Request{URL: s.at("127.0.0.1", "/")})
			require.NoError(t, err)
		}
		written.Wait() // what is left to do is to mask
		cancel()
		ended := time.Now()
		session.Close()
		late := time.Since(ended)
		failed := 0
		for id := range MaxInFlight {
			if _, err := session.Receive(t.Context(), id+1); err != nil {
				require.ErrorIs(t, err, ErrUnavailable)
				failed++
			}
		}
		if late < 50*time.Millisecond && failed > 0 {
			break
		}
		require.Less(t, attempt, 3, "%s late; %d were still masked", late, failed)
	}

	// The control: what is left to do takes far longer.
	began := time.Now()
	var masked sync.WaitGroup
	for range MaxInFlight {
		masked.Go(func() { set.Mask(body) })
	}
	masked.Wait()
	require.Greater(t, time.Since(began), 100*time.Millisecond)
}
