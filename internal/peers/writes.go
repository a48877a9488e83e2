package peers

// Whether a node accepts the write that starts a lock. A server may answer
// every query and refuse every write: at maxmemory, without enough replicas,
// with a full disk, or after a change of its ACL.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/flow"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/setup"
)

// tryFor is how long the keys of a trial last if the node could not be told to
// remove them.
const tryFor = time.Second

// A node that has refused a write is tried again until it takes one, each
// writePause at first and each longestWritePause later. A client that uses no
// lock tries each node again when a probe asks, once in tryEvery.
const (
	writePause        = time.Second
	longestWritePause = 10 * time.Second
	tryEvery          = 5 * time.Second
)

// writes tries whether a node accepts writes, and keeps the result of the last
// trial. It is safe for concurrent use; mu guards the fields below it.
type writes struct {
	n *Node

	mu     sync.Mutex
	refuse error     // nil: nothing is known against the node
	trying bool      // tryAgain runs
	tried  time.Time // when the last trial began
}

// Try runs the writes that start and end a lock: a claim joins the queue
// of a name that no lock can have, and leaves. refuses is why the node refused
// them, or nil. err is set if that could not be found out.
func (w *writes) Try(ctx context.Context) (refuses, err error) {
	n, ps := w.n, w.n.ps
	w.begin()
	named := ps.Members.Named.Load()
	keys := script.TrialKeys(ps.Set.Prefix).At(named.Home)
	terms := protocol.Terms{ID: NewID(), TTL: tryFor, Weight: 1, Capacity: 1}
	ask := func(op protocol.Op, ticket protocol.Ticket) (v []resp.Value, refuses, err error) {
		r := protocol.Request{Op: op, Ticket: ticket}
		v, err = n.Answer(ctx, script.AppendCommand(nil, keys, &terms, ps.Channel, named.Guard, 0, r))
		err = ps.Members.CheckSet(n.Index, err)
		if _, refused := errors.AsType[resp.Error](err); refused && !fault.ClusterMode(err) {
			return nil, err, nil
		}
		return v, nil, err
	}
	v, refuses, err := ask(protocol.OpJoin, 0)
	if refuses == nil && err == nil {
		var a protocol.Answer
		if a, err = script.Decode(v); err == nil {
			_, refuses, err = ask(protocol.OpLeave, a.Ticket)
		}
		if refuses != nil { // a right that only a leave needs
			refuses = fmt.Errorf("cannot release one: %w", refuses)
		}
	}
	if refuses != nil {
		refuses = &fault.WriteError{Err: refuses}
	}
	if err == nil {
		w.note(refuses)
	}
	return refuses, err
}

func (w *writes) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tried = time.Now()
}

// refusal returns why the node accepted no new lock when it was last tried. It
// is nil if the node accepted one or has not been tried.
func (w *writes) refusal() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refuse
}

// note records the result of a trial, and reports it if it has changed.
func (w *writes) note(refuses error) {
	n, ps := w.n, w.n.ps
	w.mu.Lock()
	was := w.refuse
	w.refuse = refuses
	w.mu.Unlock()
	switch {
	case refuses != nil && (was == nil || was.Error() != refuses.Error()):
		ps.Set.Logger.Warn("quorate: node refuses new locks", "node", n.Addr, "error", refuses)
		ps.Observer.Call(setup.Event{Kind: setup.EventNodeRefuses, Node: n.Addr, Err: refuses})
		w.tryAgain()
	case refuses == nil && was != nil:
		ps.Set.Logger.Info("quorate: node accepts new locks again", "node", n.Addr)
		ps.Observer.Call(setup.Event{Kind: setup.EventNodeAccepts, Node: n.Addr})
	}
}

// forget drops the result when the connection ends.
func (w *writes) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refuse = nil
}

// TryAfterRefusal starts a trial of the node because it refused a claim with
// err. The refusal may concern only that name, for example a key that the user
// has no right to. The trial finds out.
func (w *writes) TryAfterRefusal(err error) {
	e, refused := errors.AsType[resp.Error](err)
	if refused && e.Code() != "WRONGTYPE" && !flow.IsNoScript(err) {
		w.tryAgain()
	}
}

// TryLater starts a trial of the node, unless there was one lately or the node
// is known not to vote.
func (w *writes) TryLater() {
	n := w.n
	if w.last() >= tryEvery && n.Unfit() == nil && n.ps.recovering.left(n.Index) == 0 {
		w.tryAgain()
	}
}

// last is how long ago the last trial began.
func (w *writes) last() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Since(w.tried)
}

// tryAgain starts a task that tries the node until it accepts a write. It does
// not block.
func (w *writes) tryAgain() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.n.Seed() && !w.trying {
		w.trying = w.n.ps.Tasks.Start(w.tryUntilTaken)
	}
}

// tryUntilTaken is a task. A node is tried once in writePause at most, however
// many claims it refuses.
func (w *writes) tryUntilTaken() {
	ps := w.n.ps
	for pause := writePause; ; pause = min(2*pause, longestWritePause) {
		if wait := pause - w.last(); wait > 0 {
			select {
			case <-time.After(wait):
			case <-ps.Over:
			}
		}
		ctx, cancel := context.WithTimeout(ps.Life, 10*w.n.Timeout(&ps.Set))
		_, _ = w.Try(ctx) // it is noted
		cancel()
		if !w.goesOn() {
			return
		}
	}
}

// goesOn reports whether tryUntilTaken must continue.
func (w *writes) goesOn() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trying = w.refuse != nil && !w.n.ps.IsClosed() && !w.n.Dropped.Load()
	return w.trying
}
