package world

import "github.com/quorate/quorate/internal/protocol"

// A node has room for so many requests of one process. The others wait at the
// process. What is sent, and when, is decided by the code that runs in
// production (process.Attempt, lease.RegisterOp, process.Backlog). This
// file does what core/flow.go and core/register_call.go do.

// full reports whether the node has no room for a request. An urgent one finds
// room when others do not. Without a connection all requests fail, which takes
// no room.
func (l *Link) full(k protocol.Class) bool {
	room := l.Proc.World.Window
	switch k {
	case protocol.Certain:
		return false
	case protocol.Renewals:
		room += room / 4
	}
	return l.Up && room > 0 && l.pending >= room
}

// enqueue sends a request, or has it wait for room.
func (l *Link) enqueue(a *Attempt, r *protocol.Request) {
	m := &Message{att: a, Link: l, Req: *r}
	if !l.backlog.Behind(r.Class) && l.depart(m) {
		return
	}
	a.Claim.MarkWaiting(&m.Req)
	a.Waited = true
	l.backlog.Put(r.Class, m)
	if l.Proc.World.Trace != nil {
		l.Proc.World.Log("%v: %v waits for room at node %d, as one of %d", a, r.Op, l.Index, l.backlog.Len())
	}
}

// enqueueRecord is enqueue for a request of an operation on a record.
func (l *Link) enqueueRecord(i *RegisterOp, r *protocol.Request) {
	if !i.Op.Goes(r) {
		return
	}
	m := &Message{inq: i, Link: l, Req: *r}
	if !l.backlog.Behind(r.Class) && l.depart(m) {
		return
	}
	i.Op.MarkWaiting(&m.Req)
	l.backlog.Put(r.Class, m)
	if l.Proc.World.Trace != nil {
		l.Proc.World.Log("%v: waits for room at node %d, as one of %d", i, l.Index, l.backlog.Len())
	}
}

// depart sends a request if there is room.
func (l *Link) depart(m *Message) bool {
	if l.full(m.Req.Class) {
		return false
	}
	l.checkRoom(m)
	if m.inq != nil {
		m.inq.Op.Sent(&m.Req)
		l.transfer(m)
		return true
	}
	a := m.att
	a.Begun, m.terms = true, a.Claim.State.Terms
	if m.Req.Op == protocol.OpLeave {
		m.expires = m.Req.Sent.Add(l.Proc.World.TTL)
	}
	sent := l.Up || m.Req.Op == protocol.OpLeave
	if a.Claim.Sent(&m.Req, sent); sent {
		l.fits(m)
	}
	l.transfer(m)
	return true
}

// pump sends what waits, as far as there is room.
func (l *Link) pump() {
	p, w := l.Proc, l.Proc.World
	if !p.Alive || p.Paused {
		return
	}
	for k, ok := l.backlog.Next(); ok; k, ok = l.backlog.Next() {
		m := l.backlog.Take(k)
		if m.inq != nil {
			if m.inq.Op.Sending(&m.Req) && !l.depart(m) {
				l.backlog.Return(k, m)
				return
			}
			continue
		}
		a, postponed := m.att, m.att.Claim.State.NotStarted()
		if !p.Client.Sending(p.Now(), a.Claim, a.Part.shared(), &m.Req) {
			continue
		}
		if !l.depart(m) {
			a.Claim.MarkWaiting(&m.Req)
			l.backlog.Return(k, m)
			return
		}
		if postponed {
			a.T0, a.ticket, a.BeganAt = a.Claim.State.Ticket(), a.Claim.State.Ticket(), w.Now
		}
		a.schedule()
	}
}

// checkRoom fails if more is sent than the node has room for. A leave that a
// connection begins with is not sent here.
func (l *Link) checkRoom(m *Message) {
	w := l.Proc.World
	if room := w.Window; l.Up && room > 0 && l.pending >= room+room/4 {
		w.Fail("room", "process %s sends %v to node %d with %d requests unanswered there",
			l.Proc.Name, m.Req.Op, l.Index, l.pending)
	}
}

// fits holds what is sent to what the claim wants, and to what is under way.
func (l *Link) fits(m *Message) {
	w, a := l.Proc.World, m.att
	if r := a.wanted[m.Req.Node]; r.Op != protocol.OpLeave &&
		(m.Req.Op != r.Op || m.Req.Op == protocol.OpSettle && m.Req.Ticket != r.Ticket) {
		w.Fail("newest", "%v sends %v %s to node %d, and wants %v %s", a, m.Req.Op, TicketName(m.Req.Ticket),
			l.Index, r.Op, TicketName(r.Ticket))
	}
	if m.Req.Op != protocol.OpJoin && m.Req.Op != protocol.OpBeat {
		return
	}
	same := 0
	for _, u := range l.unanswered {
		if u.att == a && u.Req.Op == m.Req.Op && !u.Req.List {
			same++
		}
	}
	if same > mostSame {
		w.Fail("busy", "%v has %d times the same unanswered at node %d", a, same, l.Index)
	}
}

// mostSame is how often a request may be repeated on a connection: each time
// the process may have missed a push, and when a claim is renewed at once.
const mostSame = 3
