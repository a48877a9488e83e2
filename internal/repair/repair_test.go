package repair

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
)

const repairGuard = time.Minute

// nodes are three nodes, of which node 0 has lost its data. The functions
// answer what an attempt asks, and may be replaced.
type nodes struct {
	t        *testing.T
	r        *Repair
	now      protocol.Time
	asked    []string // in order
	every    time.Duration
	again    func() // what Every calls
	look     func(node int) (Marker, error)
	turn     func() (bool, error)
	list     func(node int, cursor string) ([]string, string, error)
	read     func(name string) (lease.Outcome, error)
	decide   func(name string) (bool, error)
	mark     func(inc protocol.Incarnation) (bool, error)
	attempts []*Attempt // to be run
}

func (n *nodes) note(format string, args ...any) {
	n.asked = append(n.asked, fmt.Sprintf(format, args...))
}

func (n *nodes) Look(node int, clock bool) (Marker, error) {
	assert.Equal(n.t, node == 0, clock, "the others' guard times are no matter of a repair")
	n.note("look %d", node)
	return n.look(node)
}
func (n *nodes) TakeTurn(d time.Duration) (bool, error) {
	assert.Equal(n.t, 4*n.r.NodeTimeout, d)
	n.note("turn")
	return n.turn()
}
func (n *nodes) Every(d time.Duration, f func()) (stop func()) {
	n.every, n.again = d, f
	return func() { n.again = nil }
}
func (n *nodes) Prolong(d time.Duration, left int) { n.note("prolong %v %d", d, left) }
func (n *nodes) YieldTurn()                        { n.note("yield") }
func (n *nodes) List(node int, cursor string) ([]string, string, error) {
	n.note("list %d %s", node, cursor)
	return n.list(node, cursor)
}
func (n *nodes) Read(name string, _ bool) (lease.Outcome, error) {
	n.note("read %s", name)
	return n.read(name)
}
func (n *nodes) Decide(name string, _ bool) (bool, error) {
	n.note("decide %s", name)
	return n.decide(name)
}
func (n *nodes) Mark(inc protocol.Incarnation, home string) (bool, error) {
	n.note("mark %d%s", inc, home)
	return n.mark(inc)
}
func (n *nodes) Each(k int, f func(io IO, k int)) {
	for i := range k {
		f(n, i)
	}
}
func (n *nodes) Group() protocol.Group { return protocol.Group{Nodes: 3, Sets: protocol.Majority(3)} }
func (*nodes) Permanent(error) bool    { return false }

// todo takes what the Repair wants.
func (n *nodes) todo() {
	for _, t := range n.r.Out {
		n.attempts = append(n.attempts, t.Attempt)
	}
	n.r.Out = nil
}

// attempt runs the one attempt that the Repair wants.
func (n *nodes) attempt() *Report {
	n.t.Helper()
	n.wants(1)
	a := n.attempts[0]
	n.attempts, n.asked = nil, nil
	a.Run(n)
	return n.r.Ended(n.now, a)
}

// wants: the Repair wants so many attempts, and nothing else.
func (n *nodes) wants(attempts int) {
	n.t.Helper()
	n.todo()
	require.Len(n.t, n.attempts, attempts)
}

// next lets time pass until the Repair wants something.
func (n *nodes) next() {
	n.now = n.r.Wake()
	n.r.Tick(n.now)
}

// newNodes returns three connected nodes. The first attempt at node 0 is to
// follow.
func newNodes(t *testing.T) *nodes {
	t.Helper()
	n := &nodes{t: t, r: NewRepair(3, 200*time.Millisecond, repairGuard, 1), now: 1}
	n.look = func(node int) (Marker, error) {
		return Marker{Incarnation: [...]protocol.Incarnation{5, 7, 7}[node], CaughtUp: node > 0}, nil
	}
	n.turn = func() (bool, error) { return true, nil }
	n.list = func(int, string) ([]string, string, error) { return nil, "0", nil }
	n.read = func(string) (lease.Outcome, error) { return lease.Settled, nil }
	n.decide = func(string) (bool, error) { return true, nil }
	n.mark = func(inc protocol.Incarnation) (bool, error) { return inc == 5, nil }
	for i := range 3 {
		n.r.Up(1, i)
	}
	n.todo()
	require.Len(t, n.attempts, 3)
	for _, a := range n.attempts[1:] {
		a.Run(lookOnly{n})
		require.Nil(t, n.r.Ended(1, a))
	}
	require.True(t, n.r.Attempted(1))
	n.attempts = n.attempts[:1]
	n.r.nodes[0].hurried = false // the other nodes had come up first
	return n
}

// lookOnly answers attempts at nodes that are caught up.
type lookOnly struct{ *nodes }

func (o lookOnly) Look(node int, _ bool) (Marker, error) { return o.look(node) }

// Names are listed once the node's guard time is over, and not before.
func TestRepairWaitsForTheGuardTime(t *testing.T) {
	n := newNodes(t)
	n.look = func(int) (Marker, error) { return Marker{Incarnation: 5, Wait: repairGuard / 2}, nil }
	require.Nil(t, n.attempt())
	require.Equal(t, []string{"look 0"}, n.asked)
	n.wants(0)
	require.True(t, n.r.Attempted(0), "no caller waits for a guard time")
	require.GreaterOrEqual(t, n.r.Wake(), protocol.Time(1).Add(repairGuard/2))
	n.next()
	n.look = newNodes(t).look
	n.attempt()
	require.Equal(t, []string{"look 0", "turn"}, n.asked[:2])
}

// A guard time that is ended while the node is looked at is not waited for,
// though the answer to the look tells of it.
func TestRepairThatIsHurriedWhileItLooks(t *testing.T) {
	n := newNodes(t)
	hurried := false
	n.look = func(int) (Marker, error) {
		if !hurried {
			hurried = true
			n.r.RetryNow(1)
		}
		return Marker{Incarnation: 5, Wait: repairGuard / 2}, nil
	}
	n.attempt()
	at := n.r.Wake()
	require.Less(t, at, protocol.Time(1).Add(time.Second))
	n.next()
	n.attempt()
	require.GreaterOrEqual(t, n.r.Wake(), at.Add(repairGuard/2), "it has not been ended")
}

// A node is marked in the incarnation in which it was brought all names. A name
// that is not decided is decided once, and comes after the others.
func TestRepairBringsAllNames(t *testing.T) {
	n := newNodes(t)
	n.list = func(node int, cursor string) ([]string, string, error) {
		switch {
		case node == 2:
			return nil, "0", nil
		case cursor == "0":
			return []string{"b", "a"}, "9", nil
		}
		return []string{"a"}, "0", nil
	}
	n.read = func(name string) (lease.Outcome, error) {
		return map[string]lease.Outcome{"a": lease.Inconclusive, "b": lease.Settled}[name], nil
	}
	failed := n.attempt()
	require.ErrorIs(t, failed.Err, ErrUndecided)
	require.Equal(t, []string{
		"look 0", "turn", "look 1", "look 2", "list 1 0", "list 1 9", "look 1", "list 2 0", "look 2",
		"read a", "decide a", "read a", "read b", "yield",
	}, n.asked)

	n.next()
	n.read = func(string) (lease.Outcome, error) { return lease.Settled, nil }
	done := n.attempt()
	require.Equal(t, []string{"look 0", "turn", "read a", "mark 5", "yield"}, n.asked, "b has been brought")
	assert.Equal(t, &Report{Names: 2}, done)
	assert.Equal(t, protocol.Never, n.r.Wake())
}

// The next attempt comes later each time, and an operator hears of it once.
func TestRepairBacksOff(t *testing.T) {
	n := newNodes(t)
	n.look = func(int) (Marker, error) { return Marker{}, errors.New("down") }
	warned := 0
	for range 2 * quietAttempts {
		if n.attempt().Warn {
			warned++
		}
		require.LessOrEqual(t, n.r.Wake().Sub(n.now), repairGuard/2)
		n.next()
	}
	assert.Equal(t, 1, warned)
	require.NotNil(t, n.attempt())
	n.wants(0)
	n.r.Up(n.now, 1) // which may have been missing
	n.wants(2)
}

// A node connects during an attempt that fails for want of it. The next attempt
// does not wait for a pause that earlier failures have made long.
func TestRepairThatFailsWhileANodeConnects(t *testing.T) {
	n := newNodes(t)
	down := func(int) (Marker, error) { return Marker{}, errors.New("down") }
	n.look = down
	for range 2 * quietAttempts {
		n.attempt()
		n.next()
	}
	n.look = func(int) (Marker, error) {
		n.r.RetryNow(n.now)
		return down(0)
	}
	n.attempt()
	require.LessOrEqual(t, n.r.Wake().Sub(n.now), n.r.first())
}

// Nothing follows a connection's end until the next one, and the turn is given
// up.
func TestRepairEndsWithTheConnection(t *testing.T) {
	n := newNodes(t)
	n.list = func(int, string) ([]string, string, error) {
		n.r.Down(1, 0)
		return []string{"a"}, "9", nil
	}
	require.Nil(t, n.attempt())
	require.NotContains(t, n.asked, "list 1 9")
	require.Equal(t, "yield", n.asked[len(n.asked)-1])
	assert.Equal(t, protocol.Never, n.r.Wake())
	n.r.Look(1, 0)
	n.wants(0)
	n.r.Up(1, 0)
	n.wants(1)
}

// A node whose cursor never returns to 0 neither fills the memory nor keeps the
// client busy, whether it lists names or none.
func TestEndlessList(t *testing.T) {
	for _, c := range []struct{ names, most int }{{1000, 200}, {0, maxPortions}} {
		n := newNodes(t)
		portions := 0
		n.list = func(node int, _ string) ([]string, string, error) {
			if node == 2 {
				return nil, "0", nil
			}
			portions++
			names := make([]string, c.names)
			for i := range names {
				names[i] = fmt.Sprintf("%d-%d%900d}", portions, i, 0)
			}
			return names, fmt.Sprint(3 + portions), nil
		}
		failed := n.attempt()
		few, is := failed.Err.(*TooFew)
		require.True(t, is)
		require.ErrorIs(t, few.Nodes[1], ErrEndless)
		assert.LessOrEqual(t, portions, c.most)
	}
}

// A node that loses its data after it was seen to be caught up is looked at
// once more.
func TestRepairLooksOnceMore(t *testing.T) {
	n := newNodes(t)
	n.r.Look(1, 0)
	n.wants(1)
	n.look = func(int) (Marker, error) { return Marker{Incarnation: 5, CaughtUp: true}, nil }
	require.Nil(t, n.attempt())
	n.wants(1)
}
