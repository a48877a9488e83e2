package peers

import (
	"crypto/x509"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/protocol"
)

// The line comes again when it says something else, and in no other case.
func TestTooFewNodesAreLoggedOnce(t *testing.T) {
	t.Parallel()
	r := reach{ps: &Peers{Over: make(chan struct{})}, timer: time.NewTimer(time.Hour), armed: true,
		pause: reachPause}
	missing := func(port int, nodes ...string) *fault.Failure {
		f := &fault.Failure{}
		for _, n := range nodes {
			f.Nodes = append(f.Nodes, fault.NodeFailure{Addr: n,
				Err: fmt.Errorf("read tcp 127.0.0.1:%d->127.0.0.2:6379: reset", port)})
		}
		return f
	}
	assert.True(t, r.update(missing(5001, "a", "b")))
	assert.False(t, r.update(missing(5002, "a", "b")), "another local port is no news")
	assert.True(t, r.update(missing(5003, "a", "c")))
	other := missing(5003, "a", "c")
	other.Nodes[0].Err = errors.New("refused")
	assert.True(t, r.update(other))
	expired := func(now time.Time) *fault.Failure { // as Certificate.Verify words it
		err := x509.CertificateInvalidError{Reason: x509.Expired, Detail: fmt.Sprintf("current time %s is after %s",
			now.Format(time.RFC3339), time.Unix(0, 0).Format(time.RFC3339))}
		return &fault.Failure{Nodes: []fault.NodeFailure{{Addr: "a", Err: err}}}
	}
	assert.True(t, r.update(expired(time.Now())))
	assert.False(t, r.update(expired(time.Now().Add(time.Minute))), "the time of day is no news")
	assert.Equal(t, 16*reachPause, r.pause, "the more lines, the seldomer")
	assert.False(t, r.update(nil))
	assert.False(t, r.armed, "a quorum is connected: the episode is over")
	close(r.ps.Over)
	r.Stop()
	assert.False(t, r.update(other), "the Quorum is closed")
	assert.False(t, r.timer.Stop(), "look, which was running as Stop was called, sets the timer again")
}

// The log says once per episode that nodes recover. Neither an answer that
// is late nor a node that falls silent makes two of one.
func TestEpisodeOutlastsLateAnswers(t *testing.T) {
	now := time.Now()
	var r recovering
	note := func(node int, wait time.Duration) (out uint32) {
		a := protocol.Answer{Status: protocol.OK, Wait: wait}
		if wait > 0 {
			a.Status = protocol.Recovering
		}
		_, out, _ = r.update(protocol.Majority(3), node, a, now)
		return out
	}
	assert.Zero(t, note(0, time.Second), "two of three can vote")
	assert.Equal(t, uint32(0b11), note(1, time.Second))

	now = now.Add(time.Second)
	assert.Zero(t, note(2, 0))
	note(0, 3*time.Millisecond)
	assert.Zero(t, note(1, 3*time.Millisecond), "an answer that was late is not a second episode")

	note(0, 0) // it votes, so there is a quorum
	note(1, 0)
	note(0, time.Second)
	assert.NotZero(t, note(1, time.Second), "it lost its data again")

	now = now.Add(time.Second + lateAnswers)
	note(2, 0) // neither has answered since: they do not count any more
	note(0, time.Second)
	assert.NotZero(t, note(1, time.Second))
}

// While two sets count, a quorum is a majority of each.
func TestTwoSetsRecover(t *testing.T) {
	both := protocol.Quorums{Present: 0b00111, Next: 0b11001}
	for nodes, possible := range map[uint32]bool{0b00110: false, 0b10001: false, 0b00100: true, 0b10010: true} {
		var r recovering
		var out uint32
		for i := range 5 {
			if nodes&(1<<i) != 0 {
				_, out, _ = r.update(both, i, protocol.Answer{Status: protocol.Recovering, Wait: time.Minute}, time.Now())
			}
		}
		assert.Equal(t, possible, out == 0, "%b", nodes)
	}
}
