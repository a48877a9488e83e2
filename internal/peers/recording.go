package peers

// How the nodes record their set: nodeset.Membership decides, and this file asks
// the nodes.

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
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
)

// Bootstrap has the nodes of the list record their set at once. It reports
// whether they have: nodes that have recorded a set keep it. They may have done
// so by an attempt that failed, as the answer to its commit was lost.
func (ps *Peers) Bootstrap(ctx context.Context) (mine bool, _ error) {
	s := &ps.Members.Recorder
	defer s.declare()()
	ctx, cancel := s.bound(ctx)
	defer cancel()
	var last error
	var proposed []nodeset.Stamp
	for pause := ps.Set.NodeTimeout / 8; ; {
		changed := s.members.changes()
		switch wrong := s.members.wrong.Load(); {
		case wrong != nil:
			return mine, &fault.Failure{Err: wrong}
		case s.members.SetKnown():
			mine = mine || slices.Contains(proposed, s.members.Config.Load().Origin)
			if !mine {
				ps.Set.Logger.Info("quorate: the nodes have already recorded their set; nothing was changed", "set",
					s.members.Config.Load().Addrs())
			}
			err := ps.ReadyWith(ctx, &ps.Set)
			s.members.Settled(ctx) // what follows finds each node that answers connected
			return mine, err
		}
		if err := cmp.Or(s.twice(), s.hopeless()); err != nil {
			return mine, err
		}
		wait := time.Duration(0) // no node is asked before all are connected
		r, err := s.recordOnce(ctx, true)
		if r != nil && r.Outcome != nodeset.RecordOther {
			proposed = append(proposed, r.Config.Origin)
		}
		switch {
		case refusedForGood(err):
			return mine, err
		case err != nil: // another client may record it at this moment
			last, wait, pause = err, mathrand.N(pause), min(2*pause, ps.Set.NodeTimeout)
		case r != nil:
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

// bound returns the context of a Bootstrap. It ends 20 node timeouts after the
// call began, or 20 of the longest that a node needs for an answer, which is
// known once the nodes are connected: to connect, to record and to connect again
// takes about a dozen answers.
func (s *recorder) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	const answers = 20
	began := time.Now()
	connecting, cancel := context.WithTimeout(ctx, answers*s.ps.Set.NodeTimeout)
	defer cancel()
	m := s.members
	s.ps.Until(connecting, func() bool { return m.tried() || m.SetKnown() || m.wrong.Load() != nil })
	return context.WithDeadline(ctx, began.Add(answers*s.longestAnswer()))
}

// longestAnswer is how long to wait for the answer of any node of the list.
func (s *recorder) longestAnswer() time.Duration {
	longest := s.ps.Set.NodeTimeout
	for _, n := range s.ps.Seeds.Live() {
		longest = max(longest, n.Timeout(&s.ps.Set))
	}
	return longest
}

// declare keeps this client from recording a set without the operator's word
// until the function that it returns is called.
func (s *recorder) declare() (done func()) {
	add := func(n int) {
		s.members.mu.Lock()
		s.declaring += n
		s.members.mu.Unlock()
	}
	add(1)
	s.members.declared.Store(true)
	return func() {
		add(-1)
		s.members.Change(-1, func(*nodeset.Membership) {}) // a recording may be due
	}
}

func (s *recorder) notRecorded(last error) error {
	if errors.Is(last, fault.ErrInvalid) {
		return last
	}
	f := s.members.Unknown()
	f.Needed = len(s.members.list())
	if leaveOutBlank(f) {
		f.Err = fmt.Errorf("%w: the nodes record their set only when all of them answer; start those that are "+
			"down, or correct their addresses", fault.ErrNoQuorum)
		return f
	}
	// All are connected and blank, so the reason is what the last attempt has met.
	why, refused := "the nodes have not recorded their set in time; try again", false
	if said, is := errors.AsType[*fault.Failure](last); is && len(said.Nodes) > 0 {
		f.Nodes, f.Blank = said.Nodes, len(f.Nodes)-len(said.Nodes)
		refused = slices.ContainsFunc(f.Nodes,
			func(n fault.NodeFailure) bool { return !errors.Is(n.Err, fault.ErrNoAnswer) })
		why = "the nodes record their set only if each of them accepts it; fix the nodes that do not"
	}
	if !refused && s.longestAnswer() > s.ps.Set.NodeTimeout {
		why = "the nodes are far away and have not recorded their set in time; allow more time, or raise " +
			"WithNodeTimeout"
	}
	f.Err = fmt.Errorf("%w: %s", fault.ErrNoQuorum, why)
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
	if s.members.Config.Load() != nil || !s.members.tried() {
		return nil
	}
	if f := s.notRecorded(nil); refusedForGood(f) && s.members.Config.Load() == nil {
		return f
	}
	return nil
}

// refusedForGood reports whether an error names a node that refuses for good.
func refusedForGood(err error) bool {
	f, is := errors.AsType[*fault.Failure](err)
	return is && slices.ContainsFunc(f.Nodes,
		func(n fault.NodeFailure) bool { return fault.Permanent(n.Err) })
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
		r, err := s.recordOnce(s.ps.Life, false)
		switch {
		case r == nil, errors.Is(err, errRecordingSuperseded): // another client records it
		case err == nil:
			// If the nodes do not vote at once, noteRecovering says that.
			s.ps.Set.Logger.Debug("quorate: the nodes have recorded their set", "set", s.members.list())
		default:
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
	key := f.Error() + report.LogKey(f)
	if key == s.lastWarned {
		return nil
	}
	s.lastWarned = key
	return f
}

// stillDue reports whether a recording is still due, and stores the result in
// recording. If none is due, record ends, and the next Change that finds one due
// starts it again.
// Invariant: recording is cleared in the critical section of members.mu that finds
// nothing due. Change reads it under the same lock, so each recording that becomes
// due has a task.
func (s *recorder) stillDue() bool {
	s.members.mu.Lock()
	defer s.members.mu.Unlock()
	s.recording = s.members.due()
	return s.recording
}

var errRecordingSuperseded = errors.New("another client is recording the set")

// recordOnce carries out the recording that is due, and returns it when it is over.
// r is nil if none is due, or if this client is recording already. err is nil if r
// is, or if all nodes have recorded the set. ready is as in Recorder.Record. The
// loop must not end before Next returns no steps, even if ctx has ended: otherwise
// this client would never record again.
func (s *recorder) recordOnce(ctx context.Context, ready bool) (r *nodeset.Recording, err error) {
	shared := nodeset.Shared{Guard: s.ps.Set.Guard, Retention: s.ps.Set.Retention, Skew: s.ps.Set.Skew}
	ballot := func(above nodeset.Ballot) nodeset.Ballot {
		return nodeset.NewBallot(time.Now(),
			Chance(), above)
	}
	s.members.mu.Lock()
	r, steps := s.members.known.Recorder.Record(ballot, shared, ready, Identity)
	s.members.mu.Unlock()
	if r == nil {
		return nil, nil
	}
	var unanswered *fault.Failure
	for len(steps) > 0 {
		var answers []*nodeset.NodeSet
		answers, unanswered = s.ask(ctx, steps)
		s.members.Change(-1, func(m *nodeset.Membership) { steps = m.Next(answers) })
	}
	switch r.Outcome {
	case nodeset.RecordDone:
		return r, nil
	case nodeset.RecordUnanswered:
		return r, unanswered
	case nodeset.RecordOther:
		return r, &fault.Failure{Err: &fault.SetError{List: s.members.list(), Set: r.Config.Addrs(),
			Since: r.Config.Stamp.Since(), Begun: r.Begun}}
	case nodeset.RecordTwice:
		return r, sameServer(s.ps.Addr(r.Node), s.ps.Addr(r.Other))
	}
	return r, errRecordingSuperseded
}

// twice is the error of a list that has a server twice, as far as runs tell.
func (s *recorder) twice() error {
	s.members.mu.Lock()
	one, other := s.members.known.Recorder.Twice()
	s.members.mu.Unlock()
	if one < 0 {
		return nil
	}
	return sameServer(s.ps.Addr(other), s.ps.Addr(one))
}

func sameServer(one, other string) error {
	return &fault.Failure{Err: fmt.Errorf("%w: node %s is the same server as %s; list each server once",
		fault.ErrInvalid, one, other)}
}

// ask has all nodes carry out their steps, all at the same time. It returns what
// each node keeps then, nil for one that has not answered in time, and what those
// have said instead.
func (s *recorder) ask(ctx context.Context, steps []nodeset.RecordStep) ([]*nodeset.NodeSet, *fault.Failure) {
	has, errs := make([]*nodeset.NodeSet, len(steps)), make([]error, len(steps))
	var all sync.WaitGroup
	for i, step := range steps {
		all.Go(func() { has[i], errs[i] = s.askNode(ctx, step) })
	}
	all.Wait()
	f := &fault.Failure{Err: fault.ErrNoQuorum, Needed: len(steps)}
	for i, step := range steps {
		if errs[i] != nil {
			f.Nodes = append(f.Nodes, fault.NodeFailure{Addr: s.ps.Addr(step.Node), Err: errs[i]})
		} else {
			f.Votes++
		}
	}
	return has, f
}

func (s *recorder) askNode(ctx context.Context, step nodeset.RecordStep) (*nodeset.NodeSet, error) {
	n := s.ps.Node(step.Node)
	// The client may have got another list meanwhile, with other addresses at
	// these indexes.
	if n == nil || n.Dropped.Load() || step.Config != nil &&
		!step.Config.Members[step.Config.Member(step.Identity)].Has(n.Addr) {
		return nil, fault.ErrNoAnswer
	}
	ctx, cancel := context.WithTimeout(ctx, 10*n.Timeout(&s.ps.Set))
	defer cancel()
	run := n.Info().Run()
	v, err := n.Answer(ctx, s.members.setStep(nil, step, run))
	if refused, is := errors.AsType[resp.Error](err); is {
		n.setRefused.Store(&refused)
	}
	if err != nil {
		return nil, err
	}
	n.setRefused.Store(nil)
	has, err := script.DecodeSet(v)
	if has.Run = run; err != nil {
		return nil, err
	}
	return &has, nil
}
