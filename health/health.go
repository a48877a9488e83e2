// Package health provides handlers for the probes of an orchestrator such as
// Kubernetes. They answer from what this process already knows, without waiting
// for any node.
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

// Ready returns a handler for the readiness probe of a service that can do
// nothing without a lock. It answers 200 while a majority of the nodes is
// connected, votes and accepts writes. Otherwise it answers 503, with the
// address and the error of each node that is missing. A node can answer and
// still refuse every write, so Ready has each node write a key of its own, at
// most once every five seconds; the next probe shows the result.
//
// If your service also serves requests that need no lock, do not use Ready: an
// outage of Redis would remove every replica from the load balancer.
func Ready(q *quorate.Quorum) http.Handler {
	c := core.CoreOf(q)
	return probe(func() error { return core.WrapError("ready", "", c.Serving()) })
}

// Live returns a handler for a liveness probe. It answers 200 even if no node
// can be reached, because restarting the process would bring no node back and
// would lose what the process holds. It answers 503 only while one of these
// elections is still acting as the leader more than maxExpired after its lease
// ended; see [leader.Election.HealthCheck].
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

// Leader returns a handler that answers 200 while this process leads, and 503
// otherwise. It is for a load balancer that should only reach the leader. A
// request may still arrive after the term has ended, so fence what the leader
// writes with the term.
func Leader(e *leader.Election) http.Handler {
	return probe(func() error {
		if l := e.Lease(); l == nil || l.Context().Err() != nil {
			return errNotLeading
		}
		return nil
	})
}

var errNotLeading = errors.New("this process is not the leader")

// probe answers by what check says.
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
