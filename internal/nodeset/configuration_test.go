package nodeset_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/nodeset"
)

const day = "19a00000000" // milliseconds, as in a ballot

func ballot(n int) nodeset.Ballot { return nodeset.Ballot(fmt.Sprintf("%s%08x", day, n)) }

// setOf is a first configuration of some addresses, proposed under ballot n.
func setOf(n int, addrs ...string) *nodeset.Configuration {
	settings := nodeset.Shared{Guard: 20 * time.Second, Retention: 5 * time.Minute}
	stamp := nodeset.StampOf(1, ballot(n))
	c := &nodeset.Configuration{Stamp: stamp, Origin: stamp, Now: settings, Next: settings, Last: len(addrs) - 1}
	for i, a := range addrs {
		c.Members = append(c.Members, nodeset.Member{Number: i, Identity: fmt.Sprintf("%s-%d", a, n), Addr: a})
	}
	return c
}

// replaced is the set ABC of which C is being replaced by D.
func replaced(set *nodeset.Configuration) (learning, joint, done *nodeset.Configuration) {
	learning = change.Begin(set, change.Goal{Add: []nodeset.Member{{Identity: "new", Addr: "D"}},
		Remove: []string{"C"}}, ballot(2))
	joint = change.Join(learning, ballot(3))
	return learning, joint, change.Finish(joint, ballot(4))
}

// A node keeps what is of a lease for as long as that may run, whatever
// retention was recorded.
func TestRetentionCoversTheGuardTime(t *testing.T) {
	t.Parallel()
	c := nodeset.Configuration{Now: nodeset.Shared{Guard: 7, Retention: 2},
		Next: nodeset.Shared{Guard: 5, Retention: 3}}
	assert.Equal(t, time.Duration(7), c.Retention())
	c.Next.Retention = 9
	assert.Equal(t, time.Duration(9), c.Retention())
}

func TestConfigurationAsText(t *testing.T) {
	t.Parallel()
	c := setOf(7, "10.0.0.1:6379", "/run/a b%20.sock", "[::1]:6379")
	c.Next.Guard, c.Next.Skew = time.Minute, time.Millisecond
	for i := range c.Members {
		c.Members[i].Identity = fmt.Sprint("id", i)
	}
	got, ok := nodeset.ParseConfiguration(c.String())
	require.True(t, ok)
	assert.Equal(t, c, got)
	assert.Equal(t, time.UnixMilli(0x19a00000000), c.Stamp.Since())
	head, b := " 1 1 1 1 1 1 1 s ", string(c.Stamp)
	_, ok = nodeset.ParseConfiguration(b + head + b + " 1 2 0s i a 1s j b")
	require.True(t, ok)
	for _, bad := range []string{
		"", "x", "0." + string(ballot(1)) + head + b + " 1 1 0s i a", b + head + "x 1 1 0s i a",
		b + head + b + " 32 1 0s i a", b + head + b + " 1 0",
		b + head + b + " 1 2 0s i a", b + head + b + " 1 2 0s i a 0s j b", b + head + b + " 1 2 0s i a 1s i b",
		b + head + b + " 1 2 0s i a 1s j a",
		b + head + b + " 1 1 0l i a", b + head + b + " 1 1 0x i a",
		b + head + b + " 1 1 32s i a", b + head + b + " 1 1 s i a",
		b + " 2 1 1 1 1 1 1 s " + b + " 1 1 0s i a", b + " 1 -1 1 1 1 1 1 s " + b + " 1 1 0s i a",
		b + " 1 1 1 1 1 1 1 l " + b + " 1 1 0e i a",
	} {
		_, ok := nodeset.ParseConfiguration(bad)
		assert.False(t, ok, bad)
	}
	n := recordedAt(c, "[::1]:6379")
	again, ok := nodeset.ParseNodeSet(n.String())
	require.True(t, ok)
	assert.Equal(t, n, again)
	assert.Equal(t, nodeset.Layout, nodeset.LayoutOf(n.String()))
	assert.Equal(t, 2, nodeset.LayoutOf("0 0 c id "+b+" 2 whatever a later version writes"))
	for _, bad := range []string{"", "0 0 - - ", "0 0 c id x 2", "0 0 c id " + b + " x"} {
		assert.Zero(t, nodeset.LayoutOf(bad), bad)
	}
	assert.Positive(t, nodeset.StampOf(10, ballot(1)).Compare(nodeset.StampOf(9, ballot(2))),
		"epochs are numbers")
	assert.Positive(t, nodeset.StampOf(1, ballot(2)).Compare(nodeset.StampOf(1, ballot(1))))
	assert.Negative(t, nodeset.Stamp("").Compare(c.Stamp))
	later := nodeset.NewBallot(time.UnixMilli(5), 0, ballot(9))
	assert.Greater(t, later, ballot(9), "whatever the clock shows")
}

// What a node shows is text of any kind: it ends no process, and what is read
// of it is what would be written. A client that finds it at each of its nodes
// goes on.
func FuzzParseConfiguration(f *testing.F) {
	learning, joint, done := replaced(setOf(1, "A", "B", "C"))
	for _, c := range []*nodeset.Configuration{learning, joint, done} {
		n := recordedAt(c, "A")
		f.Add(n.String())
		n.Phase = nodeset.SetAccepted
		f.Add(n.String())
	}
	f.Add("0 0 - life ")
	f.Fuzz(func(t *testing.T, text string) {
		n, ok := nodeset.ParseNodeSet(text)
		if !ok {
			return
		}
		again, ok := nodeset.ParseNodeSet(n.String())
		require.True(t, ok)
		n.Text, again.Text = "", ""
		require.Equal(t, n, again)
		n.Text = text
		for _, list := range [][]string{{"A"}, {"A", "B", "C"}} {
			w := newWorld()
			for _, addr := range list {
				w.at(addr).forged = &n
			}
			w.start(list...).settle(t)
		}
	})
}
