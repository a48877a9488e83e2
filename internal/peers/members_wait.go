package peers

// Waiting for a set, and for a majority of its nodes.

import (
	"context"
	"errors"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/setup"
)

// changes returns a channel that is closed at the next change of Named, Config
// or wrong. A caller takes it before it reads these. Each call uses it, so it
// takes no lock.
func (s *members) changes() <-chan struct{} { return *s.signal.Load() }

// Await waits until this client counts on a set. From the first call on, blank
// nodes record the set of the list. Await fails if the list is refused or has a
// blank server twice, if no set can be found, if the context ends, or if the
// Quorum closes. A try also fails if the nodes are blank and nothing is being
// recorded. A try waits no longer than a connection to each node and a
// recording take.
func (s *members) Await(ctx context.Context, try bool) error {
	switch {
	case s.ps.IsClosed():
		return &fault.Failure{Err: fault.ErrClosed}
	case s.CanBegin(try):
		return nil
	}
	caller := ctx
	if try {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 2*roundsToConnect*s.ps.Driver.LongestTimeout(&s.ps.Set))
		defer cancel()
	}
	// Poll, because nothing signals that a node of the list refuses
	// permanently.
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		changed := s.WaitForSet()
		if wrong := s.wrong.Load(); wrong != nil {
			return &fault.Failure{Err: wrong}
		}
		if s.allBlank() { // a list that names one server twice is never recorded
			if err := s.Recorder.twice(); err != nil {
				return err
			}
		}
		if s.SetKnown() {
			if try { // a try does not wait later, so wait for its nodes here
				s.ps.Until(ctx, func() bool {
					err, _ := s.ps.Unready()
					return err == nil || s.wrong.Load() != nil || s.tried()
				})
				if caller.Err() == nil {
					s.Met.Store(true)
				} else if f, _ := s.ps.Unready(); f != nil { // the next try waits for the rest of the time
					return f.Cut(caller)
				}
			}
			return nil
		}
		if f, hopeless := s.ps.Unready(); hopeless && s.Config.Load() == nil {
			return f
		}
		if try && s.blank() && s.tried() && !s.records() {
			return s.Unknown()
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-s.ps.Over:
			return &fault.Failure{Err: fault.ErrClosed}
		case <-ctx.Done():
			f := s.Unknown()
			if caller.Err() != nil { // otherwise a try has used up its time
				return f.Cut(caller)
			}
			return f
		}
	}
}

// CanBegin reports whether a call can begin without waiting. The first try of a
// process cannot begin when the set has just been found, because its members
// are still being connected.
func (s *members) CanBegin(try bool) bool { return s.SetKnown() && (!try || s.Met.Load()) }

// WaitForSet returns what changes returns. If no set is known now, blank nodes
// record the set of the list from here on. The caller takes a lock or writes a
// record, so it does not wait for an operator to declare the nodes brand-new.
// Each call looks again after each change, since all nodes may lose their data
// while it waits.
func (s *members) WaitForSet() <-chan struct{} {
	changed := s.changes()
	if s.Config.Load() == nil && !s.wanted.Load() {
		s.want()
	}
	return changed
}

func (s *members) want() {
	s.wanted.Store(true)
	s.Change(-1, func(m *nodeset.Membership) { m.Recorder.Want() })
}

// operatorsTime is how long the nodes of a list stay blank if no call needs
// them: at least this, and two node timeouts. A program that calls Bootstrap
// right after Connect is in time.
const operatorsTime = time.Second

// wantSoon makes blank nodes record the set of the list even if no call needs
// it yet: a service may only check its health before it takes its first lock.
func (s *members) wantSoon() {
	if s.wanted.Load() || s.declared.Load() || s.ps.Set.LooksOnly || !s.allBlank() || s.soon.Swap(true) {
		return
	}
	s.ps.Tasks.Start(func() {
		select {
		case <-time.After(max(operatorsTime, 2*s.ps.Set.NodeTimeout)):
			if !s.declared.Load() {
				s.want()
			}
		case <-s.ps.Over:
		}
	})
}

// records reports whether the nodes are about to record a set for this client.
func (s *members) records() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Recorder.recording || s.Recorder.declaring > 0
}

// Until polls every 2 ms until is() is true, for conditions that nothing
// signals.
func (ps *Peers) Until(ctx context.Context, is func() bool) {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-ps.Over:
			return
		case <-ctx.Done():
			return
		}
	}
}

// roundsToConnect is how many answers a connection may take: the pause before
// it, the dial, the login, the probe and the mark.
const roundsToConnect = 5

// Settled waits until it is known which set this client counts on, or that none
// can be found, and until a connection to each node of it has been tried. It
// waits at most as long as two attempts to connect to each node take.
func (s *members) Settled(ctx context.Context) {
	ps := s.ps
	ctx, cancel := context.WithTimeout(ctx, 2*roundsToConnect*ps.Driver.LongestTimeout(&ps.Set))
	defer cancel()
	ps.Until(ctx, s.tried)
}

// Found waits until a majority is connected, or until the set is known and a
// connection to each of its nodes has been tried. It ends early if waiting is
// hopeless, or if the nodes are brand-new.
func (s *members) Found(ctx context.Context) {
	s.ps.Until(ctx, func() bool {
		f, hopeless := s.ps.Unready()
		return f == nil || hopeless || s.blank() || s.SetKnown() && s.tried()
	})
}

// addr returns the address at which the node with an index is dialed.
func (s *members) addr(i int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known.Addr(i)
}

// tried reports whether each node of the set has been connected to or tried.
// While no set is known, these are the nodes of the list, and each must have
// shown its record or have failed to answer. A connection that was ended in
// order to judge the node again does not count as an attempt.
func (s *members) tried() bool {
	list := s.ps.Seeds.Live()
	if c := s.Config.Load(); c != nil {
		list = nil
		for _, m := range c.Members {
			n := s.ps.Node(m.Number)
			if n == nil || n.Addr != s.addr(m.Number) {
				return false
			}
			list = append(list, n)
		}
	}
	of := 0 // nodes that have shown a record of a set
	for _, n := range list {
		select {
		case <-n.Attempted:
		default:
			return false
		}
		has, err := n.Shown(), n.Err()
		if err == nil && has == nil || errors.Is(err, fault.ErrRejudged) {
			return false
		}
		if has != nil && has.Recorded() != nil {
			of++
		}
	}
	return s.Config.Load() != nil || s.wrong.Load() != nil || of <= len(list)/2
}

// ReadyWith is Ready for claims with these settings.
func (ps *Peers) ReadyWith(ctx context.Context, set *setup.Settings) error {
	// There is no signal for when a majority is connected, so this polls every 2
	// ms.
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := ps.Members.CheckSettings(set); err != nil {
			return &fault.Failure{Err: err}
		}
		err, hopeless := ps.Unready()
		if err == nil || ps.Members.blank() {
			return nil
		}
		if hopeless {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err.Cut(ctx)
		case <-ps.Over:
			return &fault.Failure{Err: fault.ErrClosed}
		}
	}
}
