package transport_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/internal/transport"
)

// vote is a call that only a node with a vote gets.
type vote struct{ *call }

func (vote) NeedsVote() {}

// A node without a vote gets other commands only. A leave is kept until a
// connection to the node with a vote.
func TestNodeWithoutAVote(t *testing.T) {
	t.Parallel()
	n := redistest.Start(t, 1).Node(0)
	var votes atomic.Bool
	ups := make(chan struct{}, 3)
	l, err := transport.NewOrdered(n.Client(), whole(transport.Config{
		Votes: votes.Load, Up: func() { ups <- struct{}{} }}))
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close(t.Context()) })
	again := func(vote bool) {
		votes.Store(vote)
		l.Reconnect(errors.New("as the test wants it"))
		await(t, ups)
	}
	await(t, ups)
	join, leave := vote{newCall("SET", "key", "join")}, vote{lasting("SET", "key", "leave")}
	other := newCall("EXISTS", "key")
	send(l, join, leave, other)
	_, err = join.wait(t)
	require.ErrorIs(t, err, transport.ErrNoVote)
	v, err := other.wait(t)
	require.NoError(t, err)
	assert.Equal(t, "0", v)
	assert.True(t, l.State(time.Now()).NoVote)
	again(false)
	assert.Zero(t, leave.replies.Load(), "it is kept")
	again(true)
	_, err = leave.wait(t)
	require.NoError(t, err)
	assert.False(t, l.State(time.Now()).NoVote)
	v, err = do(t, l, "GET", "key")
	require.NoError(t, err)
	assert.Equal(t, "leave", v)
}
