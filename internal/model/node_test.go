package model

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/protocol"
)

const ms = time.Millisecond

// bench drives one node with readable claims: claim 'a' has residue 0, 'b' 1,
// and so on.
type bench struct {
	*Node
	name *Name
	t    *testing.T
	now  int64
	cap  uint64
	outs []Out
}

func newBench(t *testing.T, capacity uint64) *bench {
	n := New(100 * ms)
	n.Bootstrap(0, 7)
	return &bench{Node: n, name: n.Name(""), t: t, now: 1000, cap: capacity}
}

func id(name byte) protocol.ID {
	return protocol.ID{0: name, 15: name - 'a'}
}

func (b *bench) do(op protocol.Op, name byte, ticket protocol.Ticket, opts ...func(*protocol.Terms,
	*protocol.Request)) protocol.Answer {
	t := protocol.Terms{ID: id(name), Weight: 1, Capacity: b.cap, TTL: 50 * ms}
	r := protocol.Request{Op: op, Ticket: ticket}
	for _, o := range opts {
		o(&t, &r)
	}
	a, outs := b.name.Handle(b.now, t, string(name), r)
	a.Clock = 0
	for i := range outs {
		outs[i].Push.Clock = 0
	}
	b.outs = outs
	return a
}

func (b *bench) join(name byte, t protocol.Ticket, opts ...func(*protocol.Terms,
	*protocol.Request)) protocol.Answer {
	return b.do(protocol.OpJoin, name, t, opts...)
}

func (b *bench) settle(name byte, t protocol.Ticket) protocol.Answer {
	return b.do(protocol.OpSettle, name, t)
}
func (b *bench) beat(name byte) protocol.Answer  { return b.do(protocol.OpBeat, name, 0) }
func (b *bench) leave(name byte) protocol.Answer { return b.do(protocol.OpLeave, name, 0) }

func notify(t *protocol.Terms, _ *protocol.Request) { t.Notify = true }
func list(_ *protocol.Terms, r *protocol.Request)   { r.List = true }

func weight(w uint64) func(*protocol.Terms, *protocol.Request) {
	return func(t *protocol.Terms, _ *protocol.Request) { t.Weight = w }
}

func TestMutexHandOver(t *testing.T) {
	b := newBench(t, 1)
	a := b.join('a', 640, notify)
	require.Equal(t, protocol.Answer{Status: protocol.OK, Incarnation: 7, Ticket: 640,
		Vote: true, HasTotals: true}, a)
	assert.Equal(t, id('a').String(), b.name.Redlock.Value(b.now))

	a = b.join('b', 641)
	assert.Equal(t, protocol.Answer{Status: protocol.OK, Incarnation: 7, Ticket: 641, Rank: 1, Wait: 50 * ms}, a)
	require.Len(t, b.outs, 1)
	assert.Equal(t, Out{"a", protocol.Push{ID: id('a'), Incarnation: 7, Ticket: 640, Waiters: true}}, b.outs[0])

	b.leave('a')
	require.Len(t, b.outs, 1)
	assert.Equal(t, Out{"b", protocol.Push{ID: id('b'), Incarnation: 7, Ticket: 641, Vote: true}}, b.outs[0])
	assert.Equal(t, id('b').String(), b.name.Redlock.Value(b.now))
	b.leave('b')
	assert.Equal(t, protocol.Ticket(641), b.name.Fence())
	assert.True(t, b.name.Empty(b.now))
	assert.Equal(t, protocol.Missing, b.beat('b').Status)
}

func TestExpiryPassesTheVoteOn(t *testing.T) {
	b := newBench(t, 1)
	b.join('a', 640)
	b.now += 20
	b.join('b', 641)
	b.now += 30
	assert.True(t, b.beat('b').Vote, "learns from the answer")
	assert.Empty(t, b.outs, "and from nothing else")
}

func TestTickets(t *testing.T) {
	b := newBench(t, 1)
	b.join('a', 640)
	assert.Equal(t, protocol.Ticket(641), b.join('b', 577).Ticket,
		"late joiner goes above the fence, in its class")
	assert.Equal(t, protocol.Ticket(704), b.settle('a', 704).Ticket)
	assert.Equal(t, protocol.Ticket(705), b.settle('b', 705).Ticket)
	assert.Equal(t, protocol.Ticket(768), b.settle('a', 705).Ticket, "taken, so the next of its class")
	b.leave('a')
	assert.Equal(t, protocol.Ticket(768), b.settle('a', 768).Ticket, "back at the fence that was its own")
	b.leave('a')
	assert.Equal(t, protocol.Ticket(770), b.settle('c', 768).Ticket, "another's fence")
	assert.Equal(t, protocol.Ticket(832), b.settle('a', 768).Ticket, "below the fence")
	assert.Equal(t, protocol.Ticket(832), b.settle('a', 700).Ticket, "tickets never fall")
}

// A ticket at the fence belongs to the claim it was given to, also after that
// claim has left.
func TestFenceOfOneWhoLeft(t *testing.T) {
	b := newBench(t, 2)
	b.join('a', 640)
	b.join('b', 705)
	b.leave('b')
	assert.Equal(t, protocol.Ticket(768), b.settle('a', 705).Ticket)
	assert.Equal(t, protocol.Ticket(769), b.settle('b', 705).Ticket)
}

func TestSettleBehindPassesTheVote(t *testing.T) {
	b := newBench(t, 1)
	b.join('a', 640)
	b.join('b', 641)
	a := b.settle('a', 704)
	assert.False(t, a.Vote)
	require.Len(t, b.outs, 1)
	assert.Equal(t, "b", b.outs[0].Owner)
	assert.True(t, b.outs[0].Push.Waiters)
	assert.Equal(t, id('b').String(), b.name.Redlock.Value(b.now))
}

func TestForeignPlainKey(t *testing.T) {
	b := newBench(t, 1)
	b.name.Redlock.Set(b.now, "redsync", 30*ms)
	a := b.join('a', 640)
	assert.False(t, a.Vote)
	assert.True(t, a.Foreign)
	assert.Equal(t, 30*ms, a.Wait)
	assert.False(t, b.join('b', 641).Foreign, "only the head is blocked by the key alone")
	b.now += 31
	assert.True(t, b.beat('a').Vote)
	// The key goes, and another client takes it: the vote is withdrawn.
	b.name.Redlock.Delete(b.now, "")
	b.name.Redlock.Set(b.now, "redsync", 0)
	a = b.beat('a')
	assert.False(t, a.Vote)
	assert.True(t, a.Foreign)
	assert.Zero(t, a.Wait)
}

func TestSemaphore(t *testing.T) {
	b := newBench(t, 3)
	a := b.join('a', 640, weight(2))
	assert.True(t, a.Vote && a.HasTotals)
	a = b.join('b', 641)
	assert.Equal(t, protocol.Answer{
		Status: protocol.OK, Incarnation: 7, Ticket: 641, Vote: true, HasTotals: true,
		Sum: 2, Digest: id('a').Digest(),
	}, a)
	assert.False(t, b.beat('a').HasTotals, "others voted above it")
	assert.False(t, b.join('c', 642, weight(3), list).Listed, "no vote, no list")
	a = b.join('b', 641, list)
	assert.Equal(t, []protocol.Lower{{ID: id('a'), Weight: 2}}, a.Lower)
	assert.False(t, b.join('d', 643).Vote, "would fit, but has no right to pass")
	assert.True(t, b.beat('d').Waiters)
	b.leave('a')
	assert.Empty(t, b.outs)
	b.leave('b')
	require.Len(t, b.outs, 1)
	assert.Equal(t, protocol.Push{ID: id('c'), Incarnation: 7, Ticket: 642, Vote: true, Waiters: true},
		b.outs[0].Push)
	b.cap = 4
	assert.Equal(t, protocol.Answer{Status: protocol.Clash, Incarnation: 7, Capacity: 3}, b.join('e', 700))
}

func TestRecovering(t *testing.T) {
	b := newBench(t, 1)
	b.join('a', 640)
	b.join('b', 641)
	b.Mark(b.now, 8)
	a := b.beat('b')
	assert.Equal(t, protocol.Answer{Status: protocol.Recovering, Incarnation: 8, Wait: 100 * ms}, a)
	assert.Equal(t, protocol.OK, b.leave('a').Status)
	assert.Empty(t, b.outs, "a leave is taken, but no claim gets a vote")
	b.Forget()
	assert.Equal(t, protocol.OtherSet, b.join('a', 640).Status, "it has no marker")
	assert.Equal(t, protocol.OK, b.leave('a').Status)
	b.Mark(b.now, 99)
	assert.Equal(t, protocol.Recovering, b.join('a', 640).Status)
	b.now += 100
	assert.Equal(t, protocol.OK, b.join('a', 640).Status)
}

// Within the guard time claims that have settled elsewhere are taken back at
// their tickets, in any order, and get no vote. A claim that joins afterwards
// is behind them. Once the name has been served no claim comes before one that
// has seen the queue.
func TestReclaim(t *testing.T) {
	b := newBench(t, 1)
	b.Forget()
	assert.Equal(t, protocol.OtherSet, b.settle('b', 641).Status)
	b.Mark(b.now, 99)
	assert.Equal(t, protocol.Recovering, b.settle('b', 641).Status)
	assert.Equal(t, protocol.Recovering, b.settle('a', 640).Status)
	assert.Equal(t, protocol.Recovering, b.settle('c', 641).Status, "the ticket is b's")
	assert.Empty(t, b.outs)
	assert.Len(t, b.name.Claims(b.now), 2)
	b.now += 60
	b.settle('a', 640) // its lease begins again
	b.now += 40
	assert.Len(t, b.name.Claims(b.now), 1, "b's lease has ended")
	a := b.join('d', 600)
	assert.Greater(t, a.Ticket, protocol.Ticket(641), "the fence is that of all that were taken back")
	assert.False(t, a.Vote)
	require.Len(t, b.outs, 1)
	assert.Equal(t, id('a'), b.outs[0].Push.ID)

	b.Configure(200*ms, time.Hour) // the guard time of the set gets longer, so the node does not vote again
	assert.Equal(t, protocol.Recovering, b.settle('e', 630).Status)
	assert.Len(t, b.name.Claims(b.now), 2, "a and d have answers without e")
}

func TestStateIsCanonical(t *testing.T) {
	b := newBench(t, 1)
	b.join('a', 640)
	s := string(b.name.AppendState(nil, b.now))
	c := b.Clone().Name("")
	state := func(at int64) string { return string(c.AppendState(nil, at)) }
	assert.Equal(t, s, state(b.now))
	assert.NotEqual(t, s, state(b.now+1))
	assert.Equal(t, state(b.now+50), state(b.now+70), "past is past")
	b.join('b', 641)
	assert.Equal(t, s, state(b.now), "a clone is independent")
}

func TestMutants(t *testing.T) {
	b := newBench(t, 1)
	b.Off = Equality | Residue | SettleRefresh | InsertAboveFence | MonotoneFence
	b.join('a', 640)
	b.now += 10
	assert.Equal(t, protocol.Ticket(641), b.join('c', 600).Ticket, "next(F) is F+1")
	assert.Equal(t, protocol.Ticket(641), b.settle('a', 641).Ticket, "the same ticket twice")
	assert.Equal(t, protocol.Ticket(600), b.settle('d', 600).Ticket, "inserted below the fence")
	for _, c := range b.name.Claims(b.now) {
		if c.ID == id('a') {
			assert.Equal(t, int64(1050), c.Expiry, "the lease of the join")
		}
	}
	b.leave('a')
	b.leave('c')
	assert.Equal(t, protocol.Ticket(600), b.name.Fence())
	b.Forget()
	b.Mark(b.now, 99)
	b.Off = Guard
	assert.Equal(t, protocol.OK, b.join('a', 640).Status)
}

// All names of a node have one marker, and are lost together. Their claims do
// not meet.
func TestNamesShareAMarker(t *testing.T) {
	b := newBench(t, 1)
	other := &bench{Node: b.Node, name: b.Name("other"), t: t, now: b.now, cap: 1}
	assert.True(t, b.join('a', 640).Vote)
	assert.True(t, other.join('b', 641).Vote)
	assert.Same(t, other.name, b.Name("other"))
	assert.Equal(t, []string{"other"}, slices.Collect(b.Names()))

	was := b.Clone()
	b.Forget()
	assert.Empty(t, b.name.Claims(b.now))
	assert.Empty(t, other.name.Claims(b.now))
	b.Mark(b.now, 99)
	assert.Equal(t, protocol.Recovering, other.join('c', 700).Status)
	assert.Equal(t, protocol.Recovering, b.join('d', 701).Status)

	ours, others := was.Name("").Claims(b.now), was.Name("other").Claims(b.now)
	assert.Len(t, ours, 1, "a clone is independent, and has all names")
	assert.Len(t, others, 1)
	assert.NotEqual(t, ours[0].ID, others[0].ID)
}

// A claim writes a record only if it has the vote, or a promise of this
// incarnation.
func TestWhoMayWriteARecord(t *testing.T) {
	b := newBench(t, 1)
	// write returns what a node with the same data answers that has no rule of
	// off.
	write := func(off Rules, op protocol.Op, name byte) protocol.Status {
		n := b.Clone()
		n.Off = off
		other := &bench{Node: n, name: n.Name(""), t: t, now: b.now, cap: 1}
		return other.do(op, name, 0, version).Status
	}
	writes := []protocol.Op{protocol.OpOpen, protocol.OpPut}

	b.join('a', 640)
	b.join('b', 641)
	for _, op := range writes {
		assert.Equal(t, protocol.OK, write(0, op, 'a'))
		assert.Equal(t, protocol.Missing, write(0, op, 'b'), "%v of a claim that waits", op)
		assert.Equal(t, protocol.OK, write(Present, op, 'b'))
	}

	b.do(protocol.OpOpen, 'a', 0, version)
	b.leave('a')
	for _, op := range writes {
		assert.Equal(t, protocol.OK, write(0, op, 'a'), "%v with a promise", op)
	}
	b.Mark(b.now, 8)
	b.now += 100
	for _, op := range writes {
		assert.Equal(t, protocol.Missing, write(0, op, 'a'), "%v with a promise of an earlier incarnation", op)
		assert.Equal(t, protocol.OK, write(PromiseIncarnation, op, 'a'))
	}
}

// version is for a request that writes under a claim that joined at the ticket
// of its residue.
func version(t *protocol.Terms, r *protocol.Request) {
	r.Stored = &protocol.Stored{Version: protocol.Version{Ticket: 640 + protocol.Ticket(t.ID[15]), ID: t.ID}}
}

// Each read of a watcher removes the two oldest watches if they have ended.
func TestWatchesThatHaveEnded(t *testing.T) {
	b := newBench(t, 1)
	for name := byte('a'); name < 'a'+8; name++ {
		b.do(protocol.OpRead, name, 0)
	}
	b.now += 1000
	for _, left := range []int{7, 5, 3, 1} { // the reader's own watch is one of them
		b.do(protocol.OpRead, 'z', 0)
		assert.Len(t, b.name.watchers, left)
	}
}
