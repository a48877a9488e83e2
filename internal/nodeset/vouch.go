package nodeset

import "github.com/quorate/quorate/internal/protocol"

// This file owns whether enough members say what the set is, so that a blank
// server at a member's address gets its place back:
//
//	it is found blank ---> it keeps a word ---> q members are asked ---> it gets its place back
//	               SetLife                Told                  SetRestore
//
// Invariant: a majority that has moved to a later configuration never serves
// the one of before again. A node of it that loses its data gets its place back
// by the word of q members, and each of these says what it serves after that
// data was lost. One of them has moved (aim exchange regress).

// vouched reports whether the server at the address of member k, which is
// blank, may get its place back. If not, Out has what is to be done for that.
// Invariant: the server is in the same life of its data as when the members
// were asked. SetRestore names what the node keeps, and the word in that is
// another one in each life.
func (w *memberWords) vouched(k int) bool {
	if !w.word(-1) {
		return false
	}
	has, s := &w.members[k].has, &w.said[k]
	life := has.Life
	if has.Config != nil { // of before, or of a list that was not recorded
		life = has.Text
	}
	if life == "" { //mutant:RuleSetLife
		w.do(k, SetAction{RecordStep: RecordStep{Kind: SetLife}})
		return false
	}
	if s.life != life || s.since == 0 {
		s.life, s.since = life, w.asked+1
	}
	if w.word(k) {
		return true
	}
	w.question()
	return false
}

// question asks the members that decide what they keep, and what their
// registers say of what follows.
func (w *memberWords) question() {
	w.asked++
	for _, member := range w.config.Members {
		n := &w.members[member.Number]
		if member.Role != Enters && !n.again && w.speaks(member.Number) {
			w.do(member.Number, SetAction{Ask: w.asked})
		}
	}
}

// remind has what is open be looked at once more, as a member has been met that
// may say something of it.
func (w *memberWords) remind() {
	asks := false
	for _, member := range w.config.Members {
		n := &w.members[member.Number]
		switch {
		case !n.up:
		case (n.fault == SetLost || n.fault == SetBetween) && w.said[member.Number].since == 0:
			if w.word(-1) {
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

// Kept says what a server answered when it was to keep a word. The members are
// asked at once, on the connections that there are. Its place comes with the
// next connection: that one shows whether it still keeps the word.
func (w *memberWords) Kept(k int, has NodeSet) {
	if w.config.Numbered(k) == nil {
		return
	}
	switch n := &w.members[k]; {
	case !n.up || n.fault != SetLost || n.has.Config != nil:
	case has.Config != nil:
		w.Again(k) // another client has given it its place
	case has.Life != "" && w.word(-1):
		if n.has = has; w.vouched(k) {
			w.Again(k)
		}
	}
}

// told takes what Told says. It returns the configuration that the client is to
// go on with then, nil if there is none.
func (w *memberWords) told(k int, ask uint32, has NodeSet, next RecordedNext) *Configuration {
	member := w.config.Numbered(k)
	if member == nil {
		return nil
	}
	n, s := &w.members[k], &w.said[k]
	if has.Identity != n.has.Identity || has.Stamp() != n.has.Stamp() || has.Phase != SetRecorded {
		w.Again(k) // it is another server, has lost its data, or has moved
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
		if w.members[o.Number].fault == SetLost && w.said[o.Number].since > 0 && w.word(o.Number) {
			w.Again(o.Number)
		}
	}
	return nil
}

// word reports whether a majority of the members that decide what follows say
// that the set is what the client counts on, since member k lost its data. They
// may have said so at any time if k is -1. Fewer are not enough: they may have
// missed a later configuration.
func (w *memberWords) word(k int) bool {
	say := w.config.numbers(func(o *Member) bool {
		n := &w.members[o.Number]
		if !n.up || n.fault != SetFits || n.has.Stamp() != w.config.Stamp || n.has.Phase != SetRecorded {
			return false
		}
		return k < 0 || w.said[o.Number].answered >= w.said[k].since //mutant:RuleSetSince=true
	})
	return protocol.Most(w.config.Deciders(), say) //mutant:RuleSetWord=true
}
