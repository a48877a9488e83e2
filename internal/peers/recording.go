package peers

// How the nodes record their set: nodeset.Membership says when, and
// nodeset.Recording how.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/report"
	"github.com/quorate/quorate/internal/script"
)

// Bootstrap has the nodes of the list record their set at once. It reports
// whether they have: nodes that have recorded a set keep it. They may have done
// so by an attempt that failed, as the answer to its commit was lost.
func (ps *Peers) Bootstrap(ctx context.Context) (mine bool, _ error) {
	ctx, cancel := context.WithTimeout(ctx, 20*ps.Set.NodeTimeout)
	defer cancel()
	s := &ps.Members.Recorder
	defer s.declare()()
	var last error
	var proposed []nodeset.Stamp
	for pause := ps.Set.NodeTimeout / 8; ; {
		changed := s.changes()
		switch wrong := s.wrong.Load(); {
		case wrong != nil:
			return mine, &fault.Failure{Err: wrong}
		case s.Usable():
			mine = mine || slices.Contains(proposed, s.Config.Load().Origin)
			if !mine {
				ps.Set.Logger.Info("quorate: the nodes have already recorded their set; nothing was changed", "set", s.Config.Load().Addrs())
			}
			err := ps.ReadyWith(ctx, &ps.Set)
			s.Settled(ctx) // what follows finds each node that answers connected
			return mine, err
		}
		if err := cmp.Or(s.twice(), s.hopeless()); err != nil {
			return mine, err
		}
		wait := time.Duration(0) // no node is asked before all are connected
		r, done, err := s.recordOnce(ctx, true)
		if r != nil && r.Outcome != nodeset.RecordOther {
			proposed = append(proposed, r.Config.Origin)
		}
		switch {
		case refusedForGood(err):
			return mine, err
		case err != nil: // another client may record it at this moment
			last, wait, pause = err, mathrand.N(pause), min(2*pause, ps.Set.NodeTimeout)
		case done:
			mine = true
		}
		select {
		case <-changed:
		case <-time.After(wait + 2*time.Millisecond):
		case <-ps.Over:
			return mine, &fault.Failure{Err: fault.ErrClosed}
		case <-ctx.Done():
			return mine, s.notRecorded(last)
		}
	}
}

// declare keeps this client from recording a set without the operator's word
// until the function that it returns is called.
func (s *recorder) declare() (done func()) {
	add := func(n int) {
		s.mu.Lock()
		s.declaring += n
		s.mu.Unlock()
	}
	add(1)
	s.declared.Store(true)
	return func() {
		add(-1)
		s.Change(-1, func(*nodeset.Membership) {}) // a recording may be due
	}
}

func (s *recorder) notRecorded(last error) error {
	if errors.Is(last, fault.ErrInvalid) {
		return last
	}
	f := s.Unknown()
	f.Needed = len(s.list())
	if leaveOutBlank(f) {
		f.Err = fmt.Errorf("%w: the nodes record their set only when all of them answer; start those that are down, or correct their addresses", fault.ErrNoQuorum)
		return f
	}
	// All are connected and blank, so the reason is what the last attempt has met.
	f.Err = fmt.Errorf("%w: the nodes have not recorded their set in time; try again", fault.ErrNoQuorum)
	if said, is := errors.AsType[*fault.Failure](last); is && len(said.Nodes) > 0 {
		f.Nodes, f.Blank = said.Nodes, len(f.Nodes)-len(said.Nodes)
		f.Err = fmt.Errorf("%w: the nodes record their set only if each of them accepts it; fix the nodes that do not", fault.ErrNoQuorum)
	}
	return f
}

// leaveOutBlank takes the blank nodes out of a failure that is due to other
// nodes, and reports whether there are such: the blank ones wait for these.
func leaveOutBlank(f *fault.Failure) bool {
	others := unasked(f.Nodes)
	if len(others) == 0 {
		return false
	}
	f.Nodes, f.Blank = others, len(f.Nodes)-len(others)
	return true
}

// unasked are the nodes that have shown no set for another reason than that they
// have recorded none, or are being judged again.
func unasked(nodes []fault.NodeFailure) []fault.NodeFailure {
	return slices.DeleteFunc(slices.Clone(nodes), func(n fault.NodeFailure) bool {
		return errors.Is(n.Err, fault.ErrSetUnknown) || errors.Is(n.Err, fault.ErrRejudged)
	})
}

// hopeless is why the set of the list cannot be recorded, whatever is waited
// for: each node was tried, they show no set, and one refuses for good.
func (s *recorder) hopeless() error {
	if s.Config.Load() != nil || !s.tried() {
		return nil
	}
	if f := s.notRecorded(nil); refusedForGood(f) && s.Config.Load() == nil {
		return f
	}
	return nil
}

// refusedForGood reports whether an error names a node that refuses for good.
func refusedForGood(err error) bool {
	f, is := errors.AsType[*fault.Failure](err)
	return is && slices.ContainsFunc(f.Nodes, func(n fault.NodeFailure) bool { return fault.Permanent(n.Err) })
}

// record has the nodes record their set for as long as that is due. It is a
// task, and Change starts one at a time. Each client of the list may do so at
// the same moment, and supersede the others, or an operator. So it waits for a
// random time first, and longer after each failure.
func (s *recorder) record() {
	for pause := time.Duration(0); s.stillDue(); {
		pause = nodeset.RecordPause(pause, s.ps.Set.NodeTimeout)
		select {
		case <-time.After(pause/2 + mathrand.N(pause/2)):
		case <-s.ps.Over:
			return
		}
		switch _, done, err := s.recordOnce(s.ps.Life, false); {
		case done:
			// If the nodes do not vote at once, noteRecovering says that.
			s.ps.Set.Logger.Debug("quorate: the nodes have recorded their set", "set", s.list())
		// To be superseded by another client is no failure: that one records
		// it.
		case err != nil && !errors.Is(err, errRecordingSuperseded):
			if f := s.news(err); f != nil {
				s.ps.Set.Logger.Warn("quorate: the nodes cannot record their set yet; retrying", "error", err, causes(f))
			}
		}
	}
}

// news is what a failed attempt says that has not been logged yet, nil for
// nothing. The attempts go on until an operator has acted. Where this client
// itself has ended connections to judge their nodes again, nothing is wrong:
// the next attempt follows in a moment.
func (s *recorder) news(err error) *fault.Failure {
	f, is := errors.AsType[*fault.Failure](err)
	if !is {
		f = &fault.Failure{Err: err}
	}
	broke := func(n fault.NodeFailure) bool { return !errors.Is(n.Err, fault.ErrRejudged) }
	if len(f.Nodes) > 0 && !slices.ContainsFunc(f.Nodes, broke) {
		return nil
	}
	gist := f.Error() + report.Gist(f)
	if gist == s.lastWarned {
		return nil
	}
	s.lastWarned = gist
	return f
}

// stillDue reports whether record has something to do. If not, the next event
// that gives it something starts it again.
// Invariant: recording is set back under the mu under which change looks at it.
func (s *recorder) stillDue() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recording = s.due()
	return s.recording
}

var errRecordingSuperseded = errors.New("another client is recording the set")

// recordOnce carries out the recording that is due, and returns it, if one is.
// What the nodes are is judged again then, whatever has become of it.
func (s *recorder) recordOnce(ctx context.Context, ready bool) (r *nodeset.Recording, done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*s.ps.Set.NodeTimeout)
	defer cancel()
	if err := s.twice(); err != nil {
		return nil, false, err
	}
	r, err = s.recordDue(ctx, ready)
	if r == nil {
		return nil, false, nil
	}
	if err != nil {
		s.Change(-1, func(m *nodeset.Membership) { m.NotRecorded() })
		return r, false, err
	}
	switch r.Outcome {
	case nodeset.RecordDone:
		s.Change(-1, func(m *nodeset.Membership) { m.Recorded(r) })
		return r, true, nil
	case nodeset.RecordOther:
		err = &fault.Failure{Err: &fault.SetError{List: s.list(), Set: r.Config.Addrs(), Since: r.Config.Stamp.Since(), Begun: r.Begun}}
	case nodeset.RecordTwice:
		err = sameServer(s.ps.Addr(r.Node), s.ps.Addr(r.Other))
	default:
		err = errRecordingSuperseded
	}
	s.Change(-1, func(m *nodeset.Membership) { m.NotRecorded() })
	return r, false, err
}

// recordDue asks the nodes for the recording that is due, nil if none is. One
// at a time: two of one client would supersede each other. The next may begin
// before the outcome becomes known, as a logger may call Bootstrap.
func (s *recorder) recordDue(ctx context.Context, ready bool) (*nodeset.Recording, error) {
	select {
	case s.One <- struct{}{}:
		defer func() { <-s.One }()
	case <-ctx.Done():
		return nil, nil
	}
	shared := nodeset.Shared{Guard: s.ps.Set.Guard, Retention: s.ps.Set.Retention, Skew: s.ps.Set.Skew}
	s.mu.Lock()
	r := s.known.Record(nodeset.NewBallot(time.Now(), Chance(), s.promised), shared, ready, Identity)
	s.mu.Unlock()
	// What a node keeps is known before its handshake has ended.
	unready := func(step nodeset.RecordStep) bool { n := s.ps.Node(step.Node); return n == nil || n.Err() != nil }
	if r == nil || slices.ContainsFunc(r.Out, unready) {
		return nil, nil
	}
	s.mu.Lock()
	s.known.Asks()
	s.mu.Unlock()
	return r, s.RecordSteps(ctx, r)
}

// twice is the error of a list that has a server twice, as far as runs tell.
func (s *recorder) twice() error {
	addrs := map[string]string{}
	for _, n := range s.ps.Seeds.Live() {
		run := n.Info().RunID
		if run == "" {
			continue
		}
		if addrs[run] != "" {
			return sameServer(n.Addr, addrs[run])
		}
		addrs[run] = n.Addr
	}
	return nil
}

func sameServer(one, other string) error {
	return &fault.Failure{Err: fmt.Errorf("%w: node %s is the same server as %s; list each server once", fault.ErrInvalid, one, other)}
}

// RecordSteps asks the nodes what a Recording wants to be asked: all at once,
// and each must answer before the next step. It notes the highest ballot that a
// node has promised: the next one is to be higher.
func (s *recorder) RecordSteps(ctx context.Context, r *nodeset.Recording) error {
	for len(r.Out) > 0 {
		steps := r.Out
		r.Out = nil
		has, errs := make([]nodeset.NodeSet, len(steps)), make([]error, len(steps))
		var all sync.WaitGroup
		for i, step := range steps {
			all.Go(func() {
				n := s.ps.Node(step.Node)
				// The client may have got another list meanwhile, with other
				// addresses at these indexes.
				if n == nil || n.Dropped.Load() || step.Config != nil && !step.Config.Members[step.Config.Member(step.Identity)].Has(n.Addr) {
					errs[i] = fault.ErrNoAnswer
					return
				}
				run := n.Info().Run()
				v, err := n.Answer(ctx, s.setStep(nil, step, run))
				if err == nil {
					has[i], err = script.DecodeSet(v)
				}
				has[i].Run = run
				errs[i] = err
			})
		}
		all.Wait()
		f := &fault.Failure{Err: fault.ErrNoQuorum, Needed: len(steps)}
		for i, step := range steps {
			if errs[i] != nil {
				f.Nodes = append(f.Nodes, fault.NodeFailure{Addr: s.ps.Addr(step.Node), Err: errs[i]})
				continue
			}
			f.Votes++
			s.mu.Lock() // a node that is met meanwhile may get what r wants of it
			s.promised = max(s.promised, has[i].Promised)
			r.Answer(step, has[i])
			s.mu.Unlock()
		}
		if len(f.Nodes) > 0 && len(r.Out) == 0 && r.Outcome == nodeset.RecordGoesOn {
			return f
		}
	}
	return nil
}
