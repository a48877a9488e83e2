package server

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/model"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
)

// The format of requests and answers: what internal/script encodes and decodes
// for the client, seen from the node's side.

// Flags of a request and of an answer; see internal/script.
const (
	list, settle, insist                                               = 2, 4, 8
	vote, waiters, foreign, totals, listed, limit, barred, ranks int64 = 1, 2, 4, 8, 16, 32, 64, 128
)

func ms(s string) time.Duration { return time.Duration(integer(s)) * time.Millisecond }

// claim carries out enter, beat and leave.
func (s *Server) claim(now int64, script string, keys, args []string) []resp.Value {
	word := func(i int, usual string) string {
		if i < len(args) {
			return args[i]
		}
		return usual
	}
	t := protocol.Terms{Counting: len(keys) == 6}
	var r protocol.Request
	id, capacity, owner := args[0], "1", ""
	switch script {
	case "enter":
		r.Op, r.Ticket, t.TTL = protocol.OpJoin, protocol.Ticket(integer(args[1])), ms(args[2])
		weights := strings.Fields(word(6, "+1 1 "))
		capacity, t.Weight = weights[0][1:], uint64(integer(weights[1]))
		tail := strings.SplitN(args[5], " ", 3)
		t.Notify, owner = tail[1] == "3", tail[2]
		flags := integer(word(7, "0"))
		if r.List = flags&list != 0; flags&settle != 0 {
			r.Op, r.Patient = protocol.OpSettle, flags&insist == 0
		}
	case "beat":
		r.Op, t.TTL, capacity = protocol.OpBeat, ms(args[1]), word(4, "1")
		flags := integer(word(5, "0"))
		r.List, r.Patient, r.Ticket = flags&list != 0, flags&insist == 0, protocol.Ticket(integer(word(6, "0")))
	case "leave":
		r.Op, capacity = protocol.OpLeave, word(2, "1")
		_, id, _ = strings.Cut(strings.TrimSuffix(id, "+"), " ")
	}
	var ok bool
	if t.ID, ok = protocol.ParseID(id); !ok { // internal/script encodes it in another form
		panic(fmt.Sprintf("server: %s of %q: %q is no claim", script, args, id))
	}
	t.Capacity = uint64(integer(capacity))
	m := s.Model.Name(keys[1])
	if t.Counting {
		if r := s.Model.Name(strings.TrimSuffix(keys[5], ":r")).Recorded(); len(r.Value) > 0 && !r.Erased {
			m.Resize(uint64(integer(string(r.Value))), r.Ticket)
		}
	}
	a := s.handle(now, m, t, owner, r)
	if r.Op == protocol.OpLeave {
		return num(1)
	}
	return answer(a)
}

// record carries out an operation of a record.
func (s *Server) record(now int64, keys, args []string) []resp.Value {
	var t protocol.Terms
	r := protocol.Request{Op: protocol.OpRead}
	owner := ""
	if args[1] == r.Op.String() {
		t.TTL, owner = ms(args[2]), args[4]
		t.ID, _ = protocol.ParseID(args[3])
	} else {
		for _, op := range []protocol.Op{protocol.OpOpen, protocol.OpPut, protocol.OpRepair} {
			if op.String() == args[1] {
				r.Op = op
			}
		}
		r.Stored = &protocol.Stored{Erased: args[5] == "1", Keep: ms(args[6])}
		r.Stored.Ticket, r.Stored.Seq = protocol.Ticket(integer(args[2])), uint64(integer(args[4]))
		r.Stored.ID, _ = protocol.ParseID(args[3])
		if args[7] != "" {
			r.Stored.Value = []byte(args[7])
		}
		if r.Op == protocol.OpRepair {
			r.Promise = &protocol.Version{Ticket: protocol.Ticket(integer(args[8]))}
			r.Promise.ID, _ = protocol.ParseID(args[9])
		}
	}
	a := s.handle(now, s.Model.Name(keys[3]), t, owner, r)
	e := a.Record
	if e == nil {
		return answer(a)
	}
	state := int64(0)
	switch {
	case e.Forged:
		state = 2
	case e.CaughtUp:
		state = 1
	}
	return []resp.Value{
		first(a), {Int: int64(a.Incarnation)}, {Int: state}, {Int: int64(e.Promise.Ticket)}, id(e.Promise.ID),
		{Int: int64(e.Ticket)}, id(e.ID),
		{Int: int64(e.Seq)}, {Int: bit(e.Erased)}, {Int: e.Keep.Milliseconds()}, {Int: e.Left.Milliseconds()},
		{Str: append([]byte{}, e.Value...)},
	}
}

// handle has the reference node handle a request, and pushes what that sets
// off.
func (s *Server) handle(now int64, m *model.Name, t protocol.Terms, owner string,
	r protocol.Request) protocol.Answer {
	a, outs := m.Handle(now, t, owner, r)
	for _, o := range outs {
		s.Publish(o.Owner, push(o.Push))
	}
	return a
}

// inspect tells an onlooker of a name.
func (s *Server) inspect(now int64, keys, args []string) []resp.Value {
	l, outs := s.Model.Name(keys[1]).Look(now, int(integer(args[0])), protocol.Ticket(integer(args[1])))
	heard := int64(0)
	for _, o := range outs {
		heard += 1 + s.Publish(o.Owner, push(o.Push))
	}
	v := []resp.Value{
		{Int: int64(l.Fence)}, {Int: int64(l.Queued)}, {Int: l.Foreign.Milliseconds()},
		{Int: l.Memory.Milliseconds()},
		{Int: int64(l.Capacity)}, {Int: int64(l.Voted)}, {Int: l.Evicted.Milliseconds()}, {Int: heard},
	}
	for _, c := range l.Claims {
		v = append(v, id(c.ID), resp.Value{Int: int64(c.Ticket)}, resp.Value{Int: int64(c.Weight)},
			resp.Value{Int: c.Expiry - now},
			resp.Value{Int: bit(c.Voted)}, resp.Value{Str: []byte(c.Owner)})
	}
	return v
}

func id(x protocol.ID) resp.Value { return resp.Value{Str: []byte(x.String())} }

func first(a protocol.Answer) resp.Value { return resp.Value{Int: a.Clock/1000*8 + int64(a.Status)} }

// answer is the form that script.Decode reads.
func answer(a protocol.Answer) []resp.Value {
	v := []resp.Value{first(a), {Int: int64(a.Incarnation)}}
	add := func(all ...uint64) {
		for _, x := range all {
			v = append(v, resp.Value{Int: int64(x)})
		}
	}
	wait := uint64((a.Wait + time.Millisecond - 1) / time.Millisecond)
	switch a.Status {
	case protocol.Missing:
		add(uint64(a.Ticket))
		return v
	case protocol.Clash:
		add(a.Capacity)
		return v
	case protocol.Recovering, protocol.Ahead:
		add(wait)
		return v
	}
	flags := int64(a.Rank) * ranks
	for _, f := range []struct {
		on   bool
		flag int64
	}{{a.Vote, vote}, {a.Waiters, waiters}, {a.Foreign, foreign}, {a.HasTotals, totals}, {a.Listed, listed},
		{a.Limit > 0, limit}, {a.Barred, barred}} {
		if f.on {
			flags |= f.flag
		}
	}
	add(uint64(a.Ticket), uint64(flags), wait)
	if a.HasTotals || a.Limit > 0 {
		add(a.Sum, a.Digest)
	}
	if a.Limit > 0 {
		add(a.Limit, uint64(a.LimitAt))
	}
	if a.Listed {
		add(a.AllSum, a.AllDigest)
	}
	for _, l := range a.Lower {
		v = append(v, id(l.ID), resp.Value{Int: int64(l.Weight)})
	}
	return v
}

// push is the form that script.ParsePush reads.
func push(p protocol.Push) string {
	kind := "w"
	switch {
	case p.Vote:
		kind = "v"
	case p.Changed:
		kind = "r"
	case p.Ask:
		kind = "a"
	case p.Evict:
		kind = "e"
	}
	s := fmt.Sprintf("%s %d %d %s %d", kind, p.Clock/1000, p.Incarnation, p.ID, p.Ticket)
	if !p.Vote {
		return s
	}
	s += fmt.Sprintf(" %d %d %d", bit(p.Waiters), p.Sum, p.Digest)
	if p.Limit > 0 {
		s += fmt.Sprintf(" %d %d", p.Limit, p.LimitAt)
	}
	return s
}
