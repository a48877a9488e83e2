// Package health provides HTTP handlers for the probes of an orchestrator such
// as Kubernetes. They answer from what this process already knows, without
// waiting for any node.
//
//	mux.Handle("GET /livez", health.Live(time.Minute, election))
//	mux.Handle("GET /leaderz", health.Leader(election))
//	mux.Handle("GET /readyz", health.Ready(q))
//
// All handlers are safe for concurrent use.
package health

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/leader"
)

// Ready returns a handler for the readiness probe of a service that can't do
// anything without a lock. It responds with 200 while a majority of the nodes
// is connected, is voting and accepts writes. Otherwise it responds with 503
// and lists the address and the error of each missing node. Because a node can
// answer and still refuse every write, Ready has each node write a test key, at
// most once every five seconds; the next probe shows the result.
//
// Do not use Ready if your service also serves requests that do not need a
// lock: during a Redis outage, it would remove every replica from the load
// balancer.
func Ready(q *quorate.Quorum) http.Handler {
	c := core.CoreOf(q)
	return probe(func() error { return core.WrapError("ready", "", c.Serving()) })
}

// Live returns a handler for a liveness probe. It responds with 200 even if no
// node can be reached, because restarting the process would not bring any node
// back, and would lose whatever the process holds. It responds with 503 only
// while one of the elections is still acting as the leader more than maxExpired
// after its lease ended; see [leader.Election.HealthCheck].
func Live(maxExpired time.Duration, elections ...*leader.Election) http.Handler {
	return probe(func() error {
		for _, e := range elections {
			if err := e.HealthCheck(maxExpired); err != nil {
				return err
			}
		}
		return nil
	})
}

// Leader returns a handler that responds with 200 while this process is the
// leader, and with 503 otherwise. Use it for a load balancer that should only
// reach the leader. A request may still arrive after the term has ended, so use
// the term to fence the leader's writes.
func Leader(e *leader.Election) http.Handler {
	return probe(func() error {
		if l := e.Lease(); l == nil || l.Context().Err() != nil {
			return errNotLeading
		}
		return nil
	})
}

var errNotLeading = errors.New("this process is not the leader")

// probe returns a handler that responds with 200 if check returns nil, and
// otherwise with 503 and the error.
func probe(check func() error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		if err := check(); err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = fmt.Fprintln(w, err)
			return
		}
		_, _ = fmt.Fprintln(w, "ok")
	})
}
