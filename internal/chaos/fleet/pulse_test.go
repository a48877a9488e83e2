package fleet

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/chaos/judge"
	"github.com/quorate/quorate/internal/chaos/record"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What clients did not get is excused while no quorum of servers answered the
// harness, and nothing else is.
func TestExcuse(t *testing.T) {
	at := func(d time.Duration) int64 { return int64(time.Hour + d) }
	p := &Pulse{quorum: 2, late: [][]span{{{at(0), at(time.Second)}}, {{at(0), at(time.Second)}}, nil}}
	excuse := func(v judge.Violation, ended int64) int {
		_, n := p.Excuse([]judge.Violation{v}, ended, 10*time.Second)
		return n
	}
	assert.Equal(t, 1, excuse(judge.Violation{At: at(-time.Second), Live: true}, at(time.Hour)))
	assert.Zero(t, excuse(judge.Violation{At: at(-time.Second)}, at(time.Hour)), "it is no matter of time")
	assert.Zero(t, excuse(judge.Violation{At: at(time.Minute), Live: true}, at(time.Hour)))
	assert.Zero(t, excuse(judge.Violation{Live: true}, at(time.Hour)))
	assert.Equal(t, 1, excuse(judge.Violation{Live: true}, at(time.Second)))
	p.late[1] = nil
	assert.Zero(t, excuse(judge.Violation{At: at(-time.Second), Live: true}, at(time.Hour)),
		"two of three were prompt")
}

// A server that is stopped is seen not to answer.
func TestPulse(t *testing.T) {
	c, err := redistest.Run(1)
	redistest.SkipIfMissing(t, err)
	require.NoError(t, err)
	defer c.Close()
	from := record.Now()
	p, stop := WatchPulse([]*Node{{Server: c.Node(0)}})
	require.NoError(t, c.Node(0).Stop())
	assert.Eventually(t, func() bool { return p.stopped(from, record.Now()) },
		20*time.Second, 10*time.Millisecond)
	require.NoError(t, c.Node(0).Cont())
	stop()
	assert.False(t, p.stopped(record.Now(), record.Now()+1))
}
