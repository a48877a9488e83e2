package process_test

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
)

// FuzzLiars has some nodes, fewer than a majority, say whatever the decoder
// lets through, answers as well as pushes, while the others are honest: these
// vote or do not, forget, are silent, refuse, and answer late.
//
// A claim must never be held unless
//
//	nodes that lie + honest nodes whose vote at exactly T still runs >= q
//
// so a node that lies can only ever give its own vote: no lie makes another
// node's vote of nothing, keeps it alive, or brings it to another ticket. Where
// the honest nodes do not vote, no claim is ever held.
func FuzzLiars(f *testing.F) {
	for i := range uint64(40) {
		f.Add(happenings(i))
	}
	f.Fuzz(func(t *testing.T, b []byte) { play(t, b) })
}

// What fuzzing does for as long as one likes, a test does for a while. It must
// have come to holds and to lies, or it has shown nothing.
func TestLiars(t *testing.T) {
	t.Parallel()
	var sum tally
	for i := range uint64(6000) {
		sum.add(play(t, happenings(i)))
		if t.Failed() {
			t.Fatalf("in round %d", i)
		}
	}
	t.Logf("%+v", sum)
	assert.Greater(t, sum.held, 500)
	assert.Greater(t, sum.heldByHelp, 100, "with the vote of a node that lies")
	assert.Greater(t, sum.lost, 50)
	assert.Greater(t, sum.accepted, 5000, "lies")
}

// happenings is what happens in one round, as bytes.
func happenings(seed uint64) []byte {
	dice := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, 100+dice.IntN(500))
	for i := range b {
		b[i] = byte(dice.Uint32())
	}
	return b
}

// tally is what rounds have come to.
type tally struct{ held, heldByHelp, lost, accepted int }

func (s *tally) add(o tally) {
	s.held += o.held
	s.heldByHelp += o.heldByHelp
	s.lost += o.lost
	s.accepted += o.accepted
}

// fate draws from the bytes of a round; when these are used up it is 0.
type fate []byte

func (f *fate) among(n int) int {
	if len(*f) == 0 {
		return 0
	}
	b := (*f)[0]
	*f = (*f)[1:]
	return int(b) % n
}

// neighbour is what a node really thinks of the claim.
type neighbour struct {
	lies   bool
	grants bool // an honest one: whether it ever votes
	inc    int64
	tkt    protocol.Ticket // of its last acknowledgement
	vote   bool
	until  protocol.Time      // its lease, less the drift
	old    protocol.Ticket    // what it voted for before it lost its data: no other claim has that vote
	oldEnd protocol.Time      // until this lease, which its guard time outlasts, has ended
	sent   []protocol.Request // and not answered yet
	pushed string             // and not arrived yet
}

// round is a claim among neighbours.
type round struct {
	t    *testing.T
	fate fate
	c    *lease.Claim
	now  protocol.Time
	all  []neighbour
	tally
}

func play(t *testing.T, b []byte) tally {
	r := &round{t: t, fate: b, now: 1e9}
	n := []int{1, 2, 3, 3, 3, 4, 5, 5, 5, 7}[r.fate.among(10)]
	terms := protocol.Terms{ID: protocol.ID{1, 2, 3, 15: 9}, Weight: 1, Capacity: 1, TTL: time.Second}
	switch r.fate.among(3) {
	case 1: // a semaphore
		terms.Capacity, terms.Counting = uint64(1+r.fate.among(4)), true
		terms.Weight = uint64(1 + r.fate.among(int(terms.Capacity)))
	case 2: // a reader or a writer
		terms.Capacity, terms.Weight = 1<<30, uint64(1+r.fate.among(2)*(1<<30-1))
	}
	r.c = lease.NewClaim(lease.Config{
		Terms: terms, Nodes: uint8(n), NodeTimeout: 100 * time.Millisecond,
		Drift: 12 * time.Millisecond, Try: r.fate.among(8) == 0,
	})
	r.all = make([]neighbour, n)
	liars := r.c.State.Sets.Need() - 1
	if r.fate.among(4) == 0 {
		liars = r.fate.among(r.c.State.Sets.Need())
	}
	for i := range r.all {
		r.all[i] = neighbour{lies: i < liars, grants: r.fate.among(2) == 0, inc: 1}
	}
	r.c.Start(r.now, terms.ID.Next(1<<50), 0, 0)
	for len(r.fate) > 0 && !r.c.State.Phase().Final() {
		r.step()
		r.judge() // as a holder does: the claim gets no time event for that
		r.c.Tick(r.now)
		r.deliver()
	}
	if r.c.State.Phase() == lease.Lost {
		if r.lost++; r.held == 0 {
			t.Fatalf("admitted and lost at once: %+v", r.all)
		}
	}
	return r.tally
}

// deliver brings the requests to the nodes.
func (r *round) deliver() {
	for _, q := range r.c.Out {
		r.all[q.Node].sent = append(r.all[q.Node].sent, q)
	}
	r.c.Out = r.c.Out[:0]
}

// judge compares what the claim believes with what is so.
func (r *round) judge() {
	if r.c.State.Phase() != lease.Holding || r.now >= r.c.Deadline() {
		return
	}
	liars, honest := 0, 0
	for i := range r.all {
		switch p := &r.all[i]; {
		case p.lies:
			liars++
		case p.vote && p.tkt == r.c.State.Ticket() && r.now < p.until,
			p.old == r.c.State.Ticket() && r.now < p.oldEnd:
			honest++
		}
	}
	q := len(r.all)/2 + 1
	if liars+honest < q {
		r.t.Fatalf("held with %d honest votes, and %d of %d nodes lie: %+v", honest, liars, len(r.all), r.all)
	}
	r.held++
	if honest < q {
		r.heldByHelp++
	}
}

// step is one thing that happens.
func (r *round) step() {
	i := r.fate.among(len(r.all))
	p := &r.all[i]
	switch r.fate.among(16) {
	case 0:
		if w := r.c.Wake(); w > r.now && w != protocol.Never {
			r.now = w
		}
	case 1:
		r.now = r.now.Add(time.Duration(1+r.fate.among(250)) * time.Millisecond)
	case 2:
		r.c.Up(r.now, i)
	case 3:
		r.c.MarkSlow(r.now, i)
	case 4:
		r.c.Renew(r.now)
	case 5:
		r.c.Shrink(r.now, uint64(1+r.fate.among(3)))
	case 6, 7:
		r.push(i, p)
	default:
		if len(p.sent) == 0 {
			return
		}
		q := p.sent[0]
		p.sent = p.sent[1:]
		switch {
		case r.fate.among(12) == 0:
			r.c.Fail(r.now, q, r.fate.among(4) == 0)
		case p.lies:
			r.lie(q)
		default:
			r.answer(p, q)
		}
	}
}

// answer is an honest one.
func (r *round) answer(p *neighbour, q protocol.Request) {
	if r.fate.among(24) == 0 { // it has lost its data
		p.forget()
	}
	v := []resp.Value{{Int: int64(protocol.OK)}, {Int: p.inc}, {}, {}}
	kind := r.fate.among(16)
	if kind == 1 {
		p.forget()
	}
	if r.now < p.oldEnd { // it is within its guard time
		kind = 1
	}
	switch kind {
	case 0:
		v[0].Int, v[2].Int, v = int64(protocol.Missing), 1<<40, v[:3]
	case 1:
		v[0].Int, v[1].Int, v[2].Int, v = int64(protocol.Recovering), p.inc, int64(1+r.fate.among(200)), v[:3]
	case 2:
		v[0].Int, v[2].Int, v = int64(protocol.Clash), 7, v[:3]
	default:
		if p.tkt == 0 || q.Op != protocol.OpBeat && q.Ticket > p.tkt {
			p.tkt, p.vote = q.Ticket+protocol.Ticket(r.fate.among(16)/14*protocol.Residues), false
		}
		p.vote = p.vote || p.grants && r.fate.among(4) > 0
		p.until = q.Sent.Add(r.c.State.TTL - r.c.State.Drift)
		v[2].Int = int64(p.tkt)
		if p.vote {
			v[3].Int = 9 // voted, and there is no claim before it
		}
	}
	if len(v) == 3 {
		p.tkt, p.vote = 0, false
	}
	a, err := script.Decode(v)
	switch {
	case err == nil:
		r.c.Answer(r.now, q, a)
	case p.tkt >= protocol.MaxTicket: // a lie has driven the claim there; no client believes such a ticket
		r.c.Fail(r.now, q, false)
	default:
		r.t.Fatalf("an honest answer, %v: %v", v, err)
	}
}

func (p *neighbour) forget() {
	if p.vote {
		p.old, p.oldEnd = p.tkt, p.until
	}
	p.inc, p.tkt, p.vote = p.inc+1, 0, false
}

// number is one of those that matter, or any.
func (r *round) number() int64 {
	t := int64(r.c.State.Ticket())
	some := []int64{
		t, t, t, t, t, t, t, t + protocol.Residues, t - protocol.Residues, 0, 0, 0, 1, 2, 1 << 30,
		int64(protocol.MaxTicket) - 1, int64(protocol.MaxTicket),
		-1, protocol.DigestMod - 1, int64(r.fate.among(256)),
	}
	return some[r.fate.among(len(some))]
}

// lie is whatever can be encoded, most of it in the shape of an answer that
// votes.
func (r *round) lie(q protocol.Request) {
	v := []resp.Value{{Int: int64(r.fate.among(8))}, {Int: int64(r.fate.among(3))}, {Int: r.number()},
		{Int: int64(r.fate.among(64))}}
	more := r.fate.among(10)
	if r.fate.among(5) > 0 {
		v[0].Int, v[1].Int = int64(protocol.OK), 1+v[1].Int/2
		more = []int{0, 1, 3, 3, 5}[more%5]
		v[3].Int = v[3].Int&(2|16) | 9 | int64(more/5*32)
	}
	for range more {
		v = append(v, resp.Value{Int: r.number()})
	}
	for range r.fate.among(4) * min(more/3, 1) {
		id := protocol.ID{byte(r.fate.among(3)), 15: byte(r.fate.among(3))}
		v = append(v, resp.Value{Str: []byte(id.String())}, resp.Value{Int: r.number()})
	}
	a, err := script.Decode(v)
	if err != nil {
		r.c.Fail(r.now, q, false)
		return
	}
	r.accepted++
	r.c.Answer(r.now, q, a)
}

// push is what a node says unasked: an honest one that the claim is first now,
// or that a claim waits.
func (r *round) push(i int, p *neighbour) {
	id := r.c.State.ID.String()
	text := fmt.Sprintf("w 5 %d %s %d", p.inc, id, min(max(p.tkt, 1), protocol.MaxTicket-1))
	switch {
	case p.pushed != "" && r.fate.among(2) == 0:
		text, p.pushed = p.pushed, "" // which may have taken so long that it is no longer so
	case p.lies && r.fate.among(8) == 0:
		n := r.fate.among(60)
		text = string(r.fate[:min(n, len(r.fate))])
	case p.lies:
		if r.fate.among(8) == 0 {
			id = hex.EncodeToString(make([]byte, 16))
		}
		text = fmt.Sprintf("v 5 %d %s %d %d %d %d", 1+r.fate.among(2), id, r.number(), r.fate.among(3),
			r.number(), r.number())
		if r.fate.among(16) == 0 {
			text = fmt.Sprintf("e 5 %d %s %d", p.inc, id, r.number())
		} else if r.fate.among(4) == 0 {
			text += fmt.Sprintf(" %d %d", r.number(), r.number())
		}
	case p.grants && p.tkt != 0 && p.tkt < protocol.MaxTicket:
		p.vote = true
		p.pushed = fmt.Sprintf("v 5 %d %s %d 0 0 0", p.inc, id, p.tkt)
	}
	m, err := script.ParsePush(text)
	switch {
	case err == nil:
		r.c.Push(r.now, i, m)
		if p.lies {
			r.accepted++
		}
	case !p.lies:
		r.t.Fatalf("an honest push, %q: %v", text, err)
	}
}
