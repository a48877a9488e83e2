package nodeset

import "github.com/quorate/quorate/internal/protocol"

// How a blank server at a member's address gets its place back: enough members
// must confirm what the set is.
//
//	it is found blank ---> it stores a word ---> q members are asked ---> it gets its place back
//	               SetLife              HandleReport            SetRestore
//
// Invariant: a majority that has moved to a later configuration never serves
// the earlier one again. If one of its nodes loses its data, that node gets its
// place back from the reports of q members, each about what the member served
// after the loss. At least one of these members has moved (aim exchange
// regress).

// mayRejoin reports whether the blank server at the address of member k may get
// its place back. If not, Out has the next step towards that.
// Invariant: the server's data is in the same life as when the members were
// asked. SetRestore names what the node stores, which includes a different word
// in each life.
func (w *memberReports) mayRejoin(k int) bool {
	if !w.confirmedByMajority(-1) {
		return false
	}
	has, s := &w.members[k].has, &w.byNumber[k]
	life := has.Life
	if has.Config != nil { // an earlier one, or one of a list that was not recorded
		life = has.Text
	}
	if life == "" { //mutant:RuleSetLife
		w.do(k, SetAction{RecordStep: RecordStep{Kind: SetLife}})
		return false
	}
	if s.life != life || s.since == 0 {
		s.life, s.since = life, w.asked+1
	}
	if w.confirmedByMajority(k) {
		return true
	}
	w.question()
	return false
}

// question asks the members that decide what follows for their records, and for
// what their registers say about the successor.
func (w *memberReports) question() {
	w.asked++
	for _, member := range w.config.Members {
		n := &w.members[member.Number]
		if member.Role != Enters && !n.again && w.isCredible(member.Number) {
			w.do(member.Number, SetAction{Ask: w.asked})
		}
	}
}

// remind goes on with nodes that wait for what members say, because a member has
// become ready. A blank server that was met before a majority confirmed the set is
// judged again, once a majority does. For a blank server whose members were asked,
// and for one that shows a later configuration, all members are asked again.
func (w *memberReports) remind() {
	asks := false
	for _, member := range w.config.Members {
		n := &w.members[member.Number]
		switch {
		case !n.up:
		case n.fault == SetBetween || n.fault == SetLost && w.byNumber[member.Number].since == 0:
			if w.confirmedByMajority(-1) {
				w.Again(member.Number)
			}
		case n.fault == SetLost || n.fault == SetAhead:
			asks = true
		}
	}
	if asks {
		w.question()
	}
}

// HandleLife takes the answer to SetLife, the first step of the drawing above:
// the blank server at the address of member k has stored a random word. If the
// server loses its data again, the word is gone too. has is what the server
// stores now.
//
// The members are then asked about the server's place, on the existing
// connections. The server gets its place with its next connection, which shows
// whether it still has the word. For example, C of A, B and C was wiped:
//
//	C stores the word w. HandleLife has A and B asked.
//	A and B confirm the set. handleReport ends the connection to C.
//	C connects again and shows w, so mayRejoin lets it have its place back.
func (m *Membership) HandleLife(k int, has NodeSet) {
	if m.config.Numbered(k) == nil {
		return
	}
	switch n := &m.members[k]; {
	case !n.up || n.fault != SetLost || n.has.Config != nil: // the connection is gone, or was judged again
	case has.Config != nil:
		m.Again(k) // another client has given it its place
	case has.Life != "" && m.reports.confirmedByMajority(-1):
		if n.has = has; m.reports.mayRejoin(k) {
			m.Again(k)
		}
	}
}

// handleReport takes the answer of HandleReport. It returns the configuration
// that the client must go on with, or nil.
func (w *memberReports) handleReport(k int, ask uint32, has NodeSet, next RecordedNext) *Configuration {
	member := w.config.Numbered(k)
	if member == nil {
		return nil
	}
	n, s := &w.members[k], &w.byNumber[k]
	if has.Identity != n.has.Identity || has.Stamp() != n.has.Stamp() || has.Phase != SetRecorded {
		w.Again(k) // it is another server, lost its data, or has moved
	} else if next.Of == w.config.Stamp {
		s.next = next
		if has.Stamp() == w.config.Stamp && has.Identity == member.Identity {
			s.answered = max(s.answered, ask)
		}
	}
	if c := w.newer(); c != nil {
		return c
	}
	for _, o := range w.config.Members {
		if w.members[o.Number].fault == SetLost && w.byNumber[o.Number].since > 0 &&
			w.confirmedByMajority(o.Number) {
			w.Again(o.Number)
		}
	}
	return nil
}

// confirmedByMajority reports whether a majority of the members that decide
// what follows serve the client's configuration, according to reports from
// after member k lost its data. If k is -1, reports of any time count. Fewer
// members are not enough, because they may have missed a later configuration.
func (w *memberReports) confirmedByMajority(k int) bool {
	say := w.config.numbers(func(o *Member) bool {
		n := &w.members[o.Number]
		if !n.up || n.fault != SetFits || n.has.Stamp() != w.config.Stamp || n.has.Phase != SetRecorded {
			return false
		}
		return k < 0 || w.byNumber[o.Number].answered >= w.byNumber[k].since //mutant:RuleSetSince=true
	})
	return protocol.Most(w.config.Deciders(), say) //mutant:RuleSetWord=true
}
