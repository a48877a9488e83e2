package peers

// Messages about too few connected or voting nodes, in the log and to a probe,
// and how buckets avoid repeating them. Nothing else depends on this file.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/report"
	"github.com/quorate/quorate/internal/setup"
)

// A node that restarts is back within reachPause. The longer an episode lasts,
// the less often a change of it is logged.
const (
	reachPause   = 2 * time.Second
	longestPause = time.Minute
)

func (r *reach) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.armed || r.ps.IsClosed() {
		return
	}
	r.armed, r.pause, r.lastLine = true, reachPause, ""
	if r.timer == nil {
		r.timer = time.AfterFunc(r.pause, r.look)
	} else {
		r.timer.Reset(r.pause)
	}
}

// Stop ends the timer permanently. The Quorum is closing, so begin starts none.
func (r *reach) Stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer != nil {
		r.timer.Stop()
	}
}

// look logs which nodes are missing, if a quorum is. It runs in a
// goroutine of the timer, so a logger that blocks delays nothing else.
func (r *reach) look() {
	ps, missing := r.ps, r.missing()
	if r.update(missing) {
		up, all := r.connected(nil)
		text := fmt.Sprintf("quorate: %d of %d nodes connected, %d can vote, %d needed; waiting", up, all,
			missing.Votes, missing.Needed)
		if blank, _ := ps.Members.blankNodes(); blank > 0 {
			text = fmt.Sprintf("quorate: %d of %d nodes connected, 0 can vote: new nodes vote only after all of them "+
				"have answered; start the missing ones, or correct their addresses", up, all)
		}
		ps.Set.Logger.LogAttrs(context.Background(), slog.LevelWarn, text, causes(missing))
	}
}

// causes returns the log attribute with each node's error.
func causes(f *fault.Failure) slog.Attr {
	all := make([]string, 0, len(f.Nodes))
	for _, n := range f.Nodes {
		all = append(all, n.Addr+": "+n.Err.Error())
	}
	return slog.String("nodes", strings.Join(all, "; "))
}

// missing returns which nodes are not connected and why. It returns nil if a
// quorum is connected, or if all nodes are connected and about to record their
// set.
func (r *reach) missing() *fault.Failure {
	ps := r.ps
	f, _ := ps.Unready()
	if f == nil || ps.Members.allBlank() {
		return nil
	}
	if ps.Members.Config.Load() == nil {
		f = ps.Members.Unknown()
		leaveOutBlank(f)
	}
	return f
}

// connected returns how many nodes are connected, and how many there are. It
// counts up as connected, although its connection is only beginning.
func (r *reach) connected(up *Node) (n, all int) {
	ps := r.ps
	list := ps.Nodes.All()
	if !ps.Members.SetKnown() {
		list = ps.Seeds.Live()
	}
	for _, node := range list {
		if node.Dropped.Load() {
			continue
		}
		all++
		if err := node.Err(); node == up || err == nil || errors.Is(err, fault.ErrRejudged) {
			n++
		}
	}
	return n, all
}

// Serving returns nil if a quorum is connected and votes, and otherwise what is
// known about each node. It does not wait.
func (ps *Peers) Serving() error {
	if !ps.Members.SetKnown() {
		return ps.Members.Unknown()
	}
	f, met, _ := tally(ps.Nodes.All(), ps.Driver.Sets(), func(n *Node) error {
		if wait := ps.recovering.left(n.Index); wait > 0 {
			return cmp.Or(n.Unfit(), error(&fault.RecoveringError{Wait: wait}))
		}
		return cmp.Or(n.Unfit(), n.Writes.refusal())
	})
	if met {
		return nil
	}
	return f
}

// update records which nodes are missing, and reports whether to log it. It
// sets the timer for the next check.
// Invariant: no timer is set after Stop. Close begins before it calls Stop, and
// update looks for that under the lock of Stop.
func (r *reach) update(missing *fault.Failure) (say bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.armed = !r.ps.IsClosed() && missing != nil; !r.armed {
		return false
	}
	if key := report.LogKey(missing); key != r.lastLine {
		r.lastLine, say = key, true
		defer func() { r.pause = min(2*r.pause, longestPause) }()
	}
	r.timer.Reset(r.pause)
	return say
}

// lateAnswers is how long after its guard time a node may still answer that it
// is recovering. It limits no wait; it only keeps an episode from being logged
// twice.
const lateAnswers = 2 * time.Second

// bootstrapAdvice is for nodes without data. Only the operator can tell whether
// they are new, and only before they have recorded their set.
const bootstrapAdvice = "they record their set on their own once all of them answer; if no client has ever " +
	"used these nodes and you don't want to wait, run \"quorate bootstrap\" or call Quorum.Bootstrap once, " +
	"before the first lock"

// noteRecovering records whether the node is within its guard time when a
// connection to it begins, so that the log says at once, before the first call,
// that no lock can be acquired (e2e: TestBrandNewNodesNameTheRemedy). It runs in
// up, after the handshake has filled probed.
func (h *handshake) noteRecovering() {
	n, p := h.n, &h.probed
	// update takes answers, so turn the result of the handshake into one.
	a := protocol.Answer{Status: protocol.OK, Wait: p.wait}
	if p.wait > 0 {
		a.Status = protocol.Recovering
	}
	if n.ps.Driver.Client.Fanout().UpdateRecovering(n.Index, p.wait > 0) {
		n.noteRecovering(a)
	}
}

// noteRecovering tells the log and the observer whether the node is within its
// guard time. The caller holds no lock, because the logger and the observer are
// called here.
func (n *Node) noteRecovering(a protocol.Answer) {
	ps := n.ps
	if ps.Driver.Sets().All()&(1<<n.Index) == 0 { // it is joining the set, and is not needed for a quorum yet
		a = protocol.Answer{Status: protocol.OK}
	}
	begins, out, wait := ps.recovering.update(ps.Driver.Sets(), n.Index, a, time.Now())
	if begins {
		ps.Observer.Call(setup.Event{Kind: setup.EventNodeRecovering, Took: a.Wait, Node: n.Addr})
	}
	if out == 0 {
		return
	}
	up, all := ps.Reach.connected(n)
	ps.Set.Logger.Warn(fmt.Sprintf("quorate: %d of %d nodes connected, %d can vote: %d new or without data; "+
		"waiting for the guard time",
		up, all, max(0, up-bits.OnesCount32(out)), bits.OnesCount32(out)), "wait",
		wait.Round(time.Millisecond), "guard", ps.Guard())
	ps.Observer.Call(setup.Event{Kind: setup.EventWaiting, Took: wait, Node: n.Addr})
}

// update records an answer of a node, and reports whether that node has just
// begun to recover. If a quorum has just become impossible, it also returns
// which nodes are recovering, and for how long.
func (r *recovering) update(sets protocol.Quorums, node int, a protocol.Answer, now time.Time) (
	begins bool, out uint32, wait time.Duration,
) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// until is a time and not a flag: a node that stops answering counts as
	// recovering until its guard time would be over, and no longer. If a guard
	// time ends later than was known, it has begun again.
	begins = a.Status == protocol.Recovering && now.Add(a.Wait).Sub(r.until[node]) > lateAnswers
	if r.until[node] = now.Add(a.Wait); a.Status != protocol.Recovering {
		r.until[node] = time.Time{}
	}
	late := uint32(0)
	for i, u := range r.until {
		left := u.Sub(now)
		if left > -lateAnswers {
			late |= 1 << i
		}
		if left > 0 {
			out |= 1 << i
			wait = max(wait, left)
		}
	}
	switch {
	case !sets.Blocked(late):
		r.logged = false
	case sets.Blocked(out) && !r.logged:
		r.logged = true
		return begins, out, wait
	}
	return begins, 0, 0
}

// left returns how much longer a node will not vote, or 0 if it votes.
func (r *recovering) left(node int) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(0, time.Until(r.until[node]))
}

// Advice returns what the operator can do about nodes that have recorded no
// set, given the errors of all nodes that do not vote. It is empty if a node
// has another error or refuses to record one, because Bootstrap needs that node
// too.
func Advice(need int, nodes []error) string {
	other := func(err error) bool { return !errors.Is(err, fault.ErrSetUnknown) || fault.Refused(err) }
	if need == 0 || len(nodes) < need || slices.ContainsFunc(nodes, other) {
		return ""
	}
	return bootstrapAdvice
}
