// Package health has handlers for the probes of an orchestrator, such as
// Kubernetes. They answer from what this process knows, and wait for no node.
//
//	mux.Handle("GET /readyz", health.Ready(q))
//	mux.Handle("GET /livez", health.Live(time.Minute, election))
//	mux.Handle("GET /leaderz", health.Leader(election))
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

// Ready returns a handler for a readiness probe. It answers 200 while q can
// lock: a majority of the nodes is connected, votes and takes new locks, as this
// process knows. Otherwise it answers 503, with the address and the error of
// each node that is missing. A node may answer and refuse every write, so a
// probe has each node write a key of its own, once in five seconds at most. The
// next probe has the result. It is safe for concurrent use.
func Ready(q *quorate.Quorum) http.Handler {
	c := core.CoreOf(q)
	return probe(func() error { return core.WrapError("ready", "", c.Serving()) })
}

// Live returns a handler for a liveness probe. It answers 200, also when no
// node can be reached: to restart a process brings no node back, and loses what
// it holds. It answers 503 only while one of these elections acts as a leader
// more than maxExpired after its lease has ended, see
// [leader.Election.HealthCheck]. It is safe for concurrent use.
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
// otherwise: for a load balancer that is to reach the leader only. A process
// may still be asked after its term has ended: what the leader writes needs the
// term's token. It is safe for concurrent use.
func Leader(e *leader.Election) http.Handler {
	return probe(func() error {
		if l := e.Lease(); l == nil || l.Context().Err() != nil {
			return errNotLeading
		}
		return nil
	})
}

var errNotLeading = errors.New("this process does not lead")

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
