package sim

import "github.com/quorate/quorate/internal/protocol"

// A node has room for so many requests of one process. The others wait at the
// process. What is sent, and when, is decided by the code that runs in
// production (process.Attempt, lease.RegisterOp, process.Backlog). This
// file does what core/flow.go and core/register_call.go do.

// full reports whether the node has no room for a request. An urgent one finds
// room when others do not. Without a connection all requests fail, which takes
// no room.
func (l *link) full(k protocol.Class) bool {
	room := l.proc.w.window
	switch k {
	case protocol.Certain:
		return false
	case protocol.Renewals:
		room += room / 4
	}
	return l.up && room > 0 && l.pending >= room
}

// offer sends a request, or has it wait for room.
func (l *link) offer(a *attempt, r *protocol.Request) {
	for len(a.wanted) <= r.Node { // the set has got larger
		a.wanted = append(a.wanted, protocol.Request{})
	}
	a.wanted[r.Node] = *r
	way := l.proc.client.Offer(a.Attempt, a.part.shared(), r, l.backlog.Behind)
	if !a.begun && r.Op == protocol.OpJoin { // T0 is of when it is first sent
		a.first, a.ticket = a.Ticket(), a.Ticket()
	}
	if way == protocol.Drop {
		return
	}
	m := &message{att: a, link: l, req: *r}
	if way == protocol.Hand && l.depart(m) {
		return
	}
	a.Waits(&m.req)
	a.waited = true
	l.backlog.Put(r.Class, m)
	if l.proc.w.trace != nil {
		l.proc.w.log("%v: %v waits for room at node %d, as one of %d", a, r.Op, l.idx, l.backlog.Len())
	}
}

// offerRecord is offer for a request of an operation on a record.
func (l *link) offerRecord(i *registerOp, r *protocol.Request) {
	way := i.Offer(r, l.backlog.Behind)
	if way == protocol.Drop {
		return
	}
	m := &message{inq: i, link: l, req: *r}
	if way == protocol.Hand && l.depart(m) {
		return
	}
	i.Waits(&m.req)
	l.backlog.Put(r.Class, m)
	if l.proc.w.trace != nil {
		l.proc.w.log("%v: waits for room at node %d, as one of %d", i, l.idx, l.backlog.Len())
	}
}

// depart sends a request if there is room.
func (l *link) depart(m *message) bool {
	if l.full(m.req.Class) {
		return false
	}
	l.checkRoom(m)
	if m.inq != nil {
		m.inq.Departed(&m.req)
		l.transfer(m)
		return true
	}
	a := m.att
	a.begun, m.terms = true, a.Terms
	if m.req.Op == protocol.OpLeave {
		m.expires = m.req.Sent.Add(l.proc.w.ttl)
	}
	sent := l.up || m.req.Op == protocol.OpLeave
	if a.Departed(&m.req, sent); sent {
		l.fits(m)
	}
	l.transfer(m)
	return true
}

// pump sends what waits, as far as there is room.
func (l *link) pump() {
	p, w := l.proc, l.proc.w
	if !p.alive || p.paused {
		return
	}
	for k, ok := l.backlog.Next(); ok; k, ok = l.backlog.Next() {
		m := l.backlog.Take(k)
		if m.inq != nil {
			if m.inq.Depart(&m.req) && !l.depart(m) {
				l.backlog.Return(k, m)
				return
			}
			continue
		}
		a, postponed := m.att, m.att.Postponed()
		if !p.client.Depart(p.now(), a.Attempt, a.part.shared(), &m.req) {
			continue
		}
		if !l.depart(m) {
			a.Waits(&m.req)
			l.backlog.Return(k, m)
			return
		}
		if postponed {
			a.first, a.ticket, a.began = a.Ticket(), a.Ticket(), w.now
		}
		a.schedule()
	}
}

// checkRoom fails if more is sent than the node has room for. A leave that a
// connection begins with is not sent here.
func (l *link) checkRoom(m *message) {
	w := l.proc.w
	if room := w.window; l.up && room > 0 && l.pending >= room+room/4 {
		w.fail("room", "process %s sends %v to node %d with %d requests unanswered there", l.proc.name, m.req.Op, l.idx, l.pending)
	}
}

// fits holds what is sent to what the claim wants, and to what is under way.
func (l *link) fits(m *message) {
	w, a := l.proc.w, m.att
	if r := a.wanted[m.req.Node]; r.Op != protocol.OpLeave && (m.req.Op != r.Op || m.req.Op == protocol.OpSettle && m.req.Ticket != r.Ticket) {
		w.fail("newest", "%v sends %v %s to node %d, and wants %v %s", a, m.req.Op, ticketName(m.req.Ticket), l.idx, r.Op, ticketName(r.Ticket))
	}
	if m.req.Op != protocol.OpJoin && m.req.Op != protocol.OpBeat {
		return
	}
	same := 0
	for _, u := range l.unanswered {
		if u.att == a && u.req.Op == m.req.Op && !u.req.List {
			same++
		}
	}
	if same > mostSame {
		w.fail("busy", "%v has %d times the same unanswered at node %d", a, same, l.idx)
	}
}

// mostSame is how often a request may be repeated on a connection: each time
// the process may have missed a push, and when a claim is renewed at once.
const mostSame = 3
