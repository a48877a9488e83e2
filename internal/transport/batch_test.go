package transport_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/internal/transport"
)

// part is a call that says which of many it was: it appends its number to a
// list.
type part struct {
	*call
	n    int
	only bool // by itself
	kind uint64
}

func newPart(n int) *part { return &part{call: newCall("RPUSH", "list", strconv.Itoa(n)), n: n} }

func (p *part) Kind() uint64 {
	if p.only {
		return 0
	}
	return p.kind + 1
}

func (p *part) AppendItem(keys, args []byte) (ks, as []byte, nKeys, nArgs int) {
	return resp.AppendString(keys, "list"), resp.AppendInt(args, int64(p.n)), 1, 1
}

// pushAll puts the parts into the list, and answers with how many there are,
// and for each its number.
const pushAll = `local r = {#ARGV} for i, n in ipairs(ARGV) do redis.call('RPUSH', KEYS[i], n) r[i + 1] = tonumber(n) end return r`

// batch is a script that does what several calls ask for.
type batch struct{ sha string }

func newBatch(t *testing.T, c *redis.Client, source string) *batch {
	t.Helper()
	sha, err := c.ScriptLoad(t.Context(), source).Result()
	require.NoError(t, err)
	return &batch{sha}
}

func (b *batch) Append(dst []byte, _ uint64, keys, args []byte, nKeys, nArgs int) []byte {
	dst = resp.AppendArray(dst, 3+nKeys+nArgs)
	dst = resp.AppendString(resp.AppendString(dst, "EVALSHA"), b.sha)
	dst = resp.AppendInt(dst, int64(nKeys))
	return append(append(dst, keys...), args...)
}

// Reply gives each call how many there are, and its own number.
func (b *batch) Reply(items []transport.Command, v []resp.Value, err error) {
	for i, c := range items {
		if err != nil || len(v) != 1+len(items) {
			c.Reply(nil, fmt.Errorf("no answer: %w", err))
		} else {
			c.Reply([]resp.Value{v[0], v[1+i]}, nil)
		}
	}
}

// Commands that are sent at once go out as one, in the order in which they were
// sent, also alongside single ones. A command that is alone, or one of few,
// goes by itself.
func TestBatch(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1).Node(0).Client()
	l := open(t, c, transport.Config{Batch: newBatch(t, c, pushAll)})
	var cmds []transport.Command
	var want []string
	for i := range 100 {
		p := newPart(i)
		p.only = i == 50 || i > 96
		cmds, want = append(cmds, p), append(want, strconv.Itoa(i))
	}
	require.NoError(t, c.ConfigResetStat(t.Context()).Err())
	send(l, cmds...)
	shared := 0
	for i, cmd := range cmds {
		v, err := cmd.(*part).wait(t)
		require.NoError(t, err)
		var head, own int
		switch n, _ := fmt.Sscan(v, &head, &own); n {
		case 2:
			assert.Equal(t, i, own)
			shared++
		default:
			assert.Equal(t, strconv.Itoa(i+1), v, "the list's length, after a command by itself")
		}
	}
	assert.Equal(t, want, c.LRange(t.Context(), "list", 0, -1).Val())
	assert.Equal(t, 100-4-1-3, shared, "all but the first ones, and those that go by themselves")
	stats := c.Info(t.Context(), "commandstats").Val()
	assert.Contains(t, stats, "cmdstat_evalsha:calls=4,", "32, 14, 32 and 14 parts")
	v, err := newSent(l, newPart(100)).wait(t)
	assert.NoError(t, err)
	assert.Equal(t, "101", v)
	require.NoError(t, shut(l))
}

func newSent(l transport.Transport, p *part) *part {
	send(l, p)
	return p
}

// batchFails sends more commands than go alone, and reports whether the last
// ones went as a batch. Of these the first gets the node's error about the
// script, once. The first four find the connection idle enough to go alone, and
// so do those that are appended when these have been answered.
func batchFails(t *testing.T, l *transport.Ordered, want string) bool {
	t.Helper()
	var cmds []transport.Command
	for i := range 10 {
		cmds = append(cmds, newPart(i))
	}
	send(l, cmds...)
	failed := 0
	for i, cmd := range cmds {
		switch _, err := cmd.(*part).wait(t); {
		case err == nil:
			assert.Zero(t, failed, "%d went alone after a batch", i)
			continue
		case failed == 0:
			assert.GreaterOrEqual(t, i, 4)
			assert.ErrorContains(t, err, want)
		default:
			assert.ErrorContains(t, err, "no answer")
		}
		failed++
	}
	return failed > 1
}

// An answer that is an error, or not of this form, says nothing to any part.
func TestBatchWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1).Node(0).Client()
	for source, want := range map[string]string{
		"return redis.error_reply('ERR sorry')": "sorry",
		"return {1}":                            "no answer",
	} {
		l := open(t, c, transport.Config{Batch: newBatch(t, c, source)})
		require.Eventually(t, func() bool { return batchFails(t, l, want) }, 20*time.Second, time.Millisecond,
			"the node answers faster than commands are appended")
		require.NoError(t, shut(l))
	}
}

// When the connection breaks, each part has its own fate.
func TestManyBreaks(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t, 1).Node(0)
	c := node.Client()
	l := open(t, c, transport.Config{Batch: newBatch(t, c, pushAll), Stall: 300 * time.Millisecond})
	require.NoError(t, node.Stop())
	var cmds []transport.Command
	for i := range 12 {
		p := newPart(i)
		if i%2 == 1 {
			p.until = time.Now().Add(time.Minute)
		}
		cmds = append(cmds, p)
	}
	send(l, cmds...)
	for i, cmd := range cmds {
		if i%2 == 0 {
			_, err := cmd.(*part).wait(t)
			assert.ErrorIs(t, err, transport.ErrBroken)
		}
	}
	require.NoError(t, node.Cont())
	for i, cmd := range cmds {
		if i%2 == 1 {
			_, err := cmd.(*part).wait(t)
			assert.NoError(t, err)
		}
	}
	var want []string
	for i := 1; i < 12; i += 2 {
		want = append(want, strconv.Itoa(i))
	}
	got := c.LRange(context.Background(), "list", 0, -1).Val()
	require.GreaterOrEqual(t, len(got), len(want))
	assert.Equal(t, want, got[len(got)-len(want):])
	require.NoError(t, shut(l))
}

// What is queued goes out with what comes after it, in order, or with Flush; as
// one command where there is much of it.
func TestAppendLeavesToFlush(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1).Node(0).Client()
	l := open(t, c, transport.Config{Batch: newBatch(t, c, pushAll)})
	one := newCall("RPUSH", "list", "1")
	l.Append(one, transport.Normal)
	two := newCall("RPUSH", "list", "2")
	send(l, two)
	for i, p := range []*call{one, two} {
		v, err := p.wait(t)
		require.NoError(t, err)
		assert.Equal(t, strconv.Itoa(i+1), v)
	}

	// The writer's goroutine may still be awake from what was sent before, and
	// takes what is appended then. So it counts that Append once left it to
	// Flush.
	last, left := 2, false
	for try := 0; try < 100 && !left; try++ {
		var queued []*part
		sent := last
		for range 47 {
			last++
			queued = append(queued, newPart(last))
			l.Append(queued[len(queued)-1], transport.Normal)
		}
		left = c.LLen(t.Context(), "list").Val() == int64(sent)
		l.Flush()
		for _, p := range queued {
			_, err := p.wait(t)
			require.NoError(t, err)
		}
	}
	assert.True(t, left, "Append sends what it is to leave to Flush")
	l.Flush() // there is nothing
	var want []string
	for i := 1; i <= last; i++ {
		want = append(want, strconv.Itoa(i))
	}
	assert.Equal(t, want, c.LRange(t.Context(), "list", 0, -1).Val())
	require.NoError(t, shut(l))
	l.Append(newCall("PING"), transport.Normal) // refused, as what is sent
	l.Flush()
}
