package core

// This file owns the log line that says why no lock can be acquired when nodes
// are new. Nothing else depends on it.

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// recovering logs once per episode that there is no quorum until the guard time
// of some nodes is over. mu guards it. An episode begins when a quorum becomes
// impossible, and ends when one is possible. Where only time says that a node
// votes again, the episode lasts for lateAnswers longer. See
// TestEpisodeOutlastsLateAnswers.
type recovering struct {
	mu     sync.Mutex
	until  [maxNodes]time.Time // per node
	logged bool
}

// lateAnswers is how much later than its guard time a node may still be heard
// to recover. It bounds no wait: it keeps an episode from being logged twice.
const lateAnswers = 2 * time.Second

const (
	// A node without data is brand-new, or has forgotten everything. Only the
	// operator can tell these apart, and only before a first call has the nodes
	// record their set.
	emptyNodes = "quorate: the nodes hold no data of Quorate: they are brand-new or lost everything, " +
		"so no lock can be acquired until a guard time is over; " + bootstrapAdvice
	forgetfulNodes = "quorate: waiting for nodes that are new or lost their data: " +
		"they may have forgotten leases that still run, so none votes until the guard time is over"

	bootstrapAdvice = "if no client has ever used these nodes, run \"quorate bootstrap\" or call Quorum.Bootstrap once, before the first lock: they vote at once then"
)

// begun notes whether a node is within its guard time as a connection to it
// begins. So the log says at once that no lock can be acquired, before the
// first call (e2e: TestBrandNewNodesNameTheRemedy). It runs in up, after the
// handshake that has filled probed.
func (n *node) begun() {
	q := n.q
	select {
	case <-q.built:
	case <-q.closing:
		return
	}
	p := &n.probed
	// note takes answers, so the handshake's finding is put as one.
	a := protocol.Answer{Status: protocol.OK, Wait: p.wait}
	if p.wait > 0 {
		a.Status = protocol.Recovering
	}
	if q.driver.client.Recovers(n.index, p.wait > 0) {
		n.noteRecovering(a)
	}
}

// noteRecovering notes for the log whether the node is within its guard time.
// The caller holds no lock: the logger and the observer are called here.
func (n *node) noteRecovering(a protocol.Answer) {
	q := n.q
	if q.driver.sets().All()&(1<<n.index) == 0 { // it enters the set, and is not needed for a quorum yet
		a = protocol.Answer{Status: protocol.OK}
	}
	begins, out, wait, text := q.recovering.note(q.Size(), n.index, a, time.Now())
	if begins {
		q.observer.call(Event{Kind: EventNodeRecovering, Took: a.Wait, Node: n.addr})
	}
	if text == "" {
		return
	}
	if q.set.maySay(time.Now()) {
		q.set.Logger.LogAttrs(context.Background(), slog.LevelWarn, text,
			slog.Int("nodes", out), slog.Int("of", q.Size()), slog.Duration("wait", wait.Round(time.Millisecond)), slog.Duration("guard", q.guard()))
	}
	q.observer.call(Event{Kind: EventWaiting, Took: wait, Node: n.addr})
}

// note takes an answer of one of so many nodes. It reports whether that node
// has just begun to recover. If a quorum has just become impossible it returns
// how many nodes recover, for how long, and what the log says of it.
func (r *recovering) note(nodes, node int, a protocol.Answer, now time.Time) (begins bool, out int, wait time.Duration, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// until is a time and not a flag: a node that does not answer any more
	// counts as one that recovers until its guard time would be over, and not
	// longer.
	begins = a.Status == protocol.Recovering && r.until[node].Sub(now) <= -lateAnswers
	if r.until[node] = now.Add(a.Wait); a.Status != protocol.Recovering {
		r.until[node] = time.Time{}
	}
	late := 0
	for _, u := range r.until {
		left := u.Sub(now)
		if left > -lateAnswers {
			late++
		}
		if left > 0 {
			out++
			wait = max(wait, left)
		}
	}
	lacking := func(out int) bool { return nodes-out < nodes/2+1 }
	switch {
	case !lacking(late):
		r.logged = false
	case lacking(out) && !r.logged:
		r.logged, text = true, forgetfulNodes
	}
	return begins, out, wait, text
}

// left returns for how much longer a node does not vote, 0 if it does.
func (r *recovering) left(node int) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(0, time.Until(r.until[node]))
}

// Advice says what the operator can do about nodes that have recorded no set.
// It is empty unless they would make a quorum of need nodes: where they are
// fewer, other nodes are down, and Bootstrap needs these, too.
func Advice(need int, errs []error) string {
	blank := 0
	for _, err := range errs {
		if errors.Is(err, errSetUnknown) {
			blank++
		}
	}
	if need == 0 || blank < need {
		return ""
	}
	return bootstrapAdvice
}

// noteBlank logs that the nodes of the list hold no data, once.
func (s *members) noteBlank() {
	if s.blank() && !s.saidBlank.Swap(true) && s.q.set.maySay(time.Now()) {
		s.q.set.Logger.Warn(emptyNodes, "nodes", s.list(), "guard", s.q.guard())
	}
}
