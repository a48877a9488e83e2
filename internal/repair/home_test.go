package repair_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/repair"
)

// entering answers for node 0, which enters, and node 1, which leaves and lists
// the names.
type entering struct {
	repair.IO
	home    string // of the configuration that both serve
	names   []string
	brought map[string]bool
	fails   string   // the name that cannot be brought
	listed  func()   // comes after a list
	marked  []string // the names that node 0 had as it was marked
	marks   []string // the configurations that the marks named
}

func (n *entering) Look(node int, _ bool) (repair.Marker, error) {
	return repair.Marker{Incarnation: 5, Home: n.home, CaughtUp: node == 1}, nil
}
func (n *entering) TakeTurn(time.Duration) (bool, error)      { return true, nil }
func (n *entering) YieldTurn()                                {}
func (n *entering) Every(time.Duration, func()) (stop func()) { return func() {} }
func (n *entering) Permanent(error) bool                      { return false }
func (n *entering) Group() protocol.Group {
	return protocol.Group{Nodes: 2, Sets: protocol.Majority(2)}
}
func (n *entering) List(int, string) ([]string, string, error) {
	names := n.names
	n.listed()
	return names, "0", nil
}
func (n *entering) Read(name string, _ bool) (lease.Outcome, error) {
	if name == n.fails {
		return lease.Asking, errors.New("no answer")
	}
	n.brought[name] = true
	return lease.Settled, nil
}
func (n *entering) Mark(_ protocol.Incarnation, home string) (bool, error) {
	if n.marks = append(n.marks, home); home != n.home {
		return false, nil
	}
	for name := range n.brought {
		n.marked = append(n.marked, name)
	}
	return true, nil
}
func (n *entering) Each(k int, f func(io repair.IO, k int)) {
	for i := range k {
		f(n, i)
	}
}

// A name is recorded by nodes that leave after they listed their names in
// Learning. A node that counts from then on is not marked without that name,
// whether the attempt ends in between or goes on.
func TestNamesAreListedByTheConfigurationOfTheMark(t *testing.T) {
	namesListedBeforeTheNodeCounts(t)
	listThatOutlastsItsConfiguration(t)
}

func newEntering() (*entering, *repair.Repair) {
	r := repair.NewRepair(2, 200*time.Millisecond, time.Minute, 1)
	r.Up(1, 0)
	return &entering{home: "learning", names: []string{"a"}, brought: map[string]bool{}, listed: func() {}}, r
}

func attempt(t assert.TestingT, n *entering, r *repair.Repair) {
	if r.Tick(r.Wake()); assert.Len(t, r.Out, 1) {
		a := r.Out[0].Attempt
		r.Out = nil
		a.Run(n)
		r.Ended(1, a)
	}
}

func namesListedBeforeTheNodeCounts(t assert.TestingT) {
	n, r := newEntering()
	n.fails = "a"
	attempt(t, n, r)
	n.names, n.fails, n.home = []string{"a", "b"}, "", "joint"
	attempt(t, n, r)
	assert.ElementsMatch(t, []string{"a", "b"}, n.marked)
	assert.Equal(t, []string{"joint"}, n.marks)
}

func listThatOutlastsItsConfiguration(t assert.TestingT) {
	n, r := newEntering()
	n.listed = func() { n.names, n.home = []string{"a", "b"}, "joint" }
	attempt(t, n, r)
	assert.Empty(t, n.marked)
	attempt(t, n, r)
	assert.ElementsMatch(t, []string{"a", "b"}, n.marked)
	assert.Equal(t, []string{"learning", "joint"}, n.marks)
}
