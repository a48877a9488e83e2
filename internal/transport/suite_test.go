package transport_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/testkit/memory"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/internal/transport"
)

// What every Transport guarantees.

// rig is one implementation, and a node for it.
type rig struct {
	open         func(cfg transport.Config) transport.Transport
	freeze, thaw func()
}

var rigs = map[string]func(t *testing.T) rig{
	"ordered": func(t *testing.T) rig {
		n := redistest.Start(t, 1).Node(0)
		return rig{
			open: func(cfg transport.Config) transport.Transport {
				l, err := transport.NewOrdered(n.Client(), whole(cfg))
				require.NoError(t, err)
				return l
			},
			freeze: func() { require.NoError(t, n.Stop()) },
			thaw:   func() { require.NoError(t, n.Cont()) },
		}
	},
	"ordered, RESP2": func(t *testing.T) rig {
		n := redistest.Start(t, 1).Node(0)
		c := redis.NewClient(&redis.Options{Addr: n.Addr(), Protocol: 2})
		t.Cleanup(func() { c.Close() })
		return rig{
			open: func(cfg transport.Config) transport.Transport {
				l, err := transport.NewOrdered(c, whole(cfg))
				require.NoError(t, err)
				return l
			},
			freeze: func() { require.NoError(t, n.Stop()) },
			thaw:   func() { require.NoError(t, n.Cont()) },
		}
	},
	"memory": func(*testing.T) rig {
		n := memory.NewNode()
		return rig{
			open:   func(cfg transport.Config) transport.Transport { return memory.NewTransport(n, cfg) },
			freeze: n.Freeze, thaw: n.Thaw,
		}
	},
}

// connected opens a transport, and waits until it is up.
func (r *rig) connected(t *testing.T, cfg transport.Config) transport.Transport {
	t.Helper()
	up, first := make(chan struct{}), sync.Once{}
	before := cfg.Up
	cfg.Up = func() {
		if before != nil {
			before()
		}
		first.Do(func() { close(up) })
	}
	l := r.open(cfg)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = l.Close(ctx)
	})
	await(t, up)
	return l
}

func await[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(time.Minute):
		t.Fatal("it does not come")
	}
	return v
}

func TestTransports(t *testing.T) {
	t.Parallel()
	for name, build := range rigs {
		for what, test := range map[string]func(t *testing.T, r rig){
			"order": keepsOrder, "push": delivers, "break": breaksOnce, "close": closes, "room": hasRoom,
			"room after a break": hasRoomAfterABreak,
		} {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				r := build(t)
				test(t, r)
			})
		}
	}
}

// keepsOrder: commands are carried out in the order of Append, whichever
// goroutine flushes, and each gets its own answer.
func keepsOrder(t *testing.T, r rig) {
	l := r.connected(t, transport.Config{})
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			key := fmt.Sprint("key", g)
			for first := 0; first < 500; first += 50 { // not more than there is room for
				var gets []*call
				for i := first; i < first+50; i++ {
					get := newCall("GET", key)
					a, b := l.Append(newCall("SET", key, fmt.Sprint(i)), transport.Normal), l.Append(get, transport.Urgent)
					if gets = append(gets, get); !assert.Equal(t, transport.Taken, max(a, b)) {
						return
					}
					if i%7 == 0 {
						l.Flush()
					}
				}
				l.Flush()
				for i, c := range gets {
					v, err := c.wait(t)
					if !assert.NoError(t, err) || !assert.Equal(t, fmt.Sprint(first+i), v) {
						return
					}
				}
			}
		})
	}
	all.Wait()
}

// delivers: what the node pushes arrives in order, after Subscribed.
func delivers(t *testing.T, r rig) {
	const pushes = 200
	subscribed, got := make(chan struct{}, 100), make(chan string, pushes)
	l := r.connected(t, transport.Config{
		Channel: "ch", Subscribed: func() { subscribed <- struct{}{} }, Push: func(s string) { got <- s },
	})
	await(t, subscribed)
	for i := range pushes {
		send(l, newCall("PUBLISH", "ch", fmt.Sprint(i)))
	}
	for i := range pushes {
		require.Equal(t, fmt.Sprint(i), await(t, got))
	}
}

// breaksOnce: when a connection breaks, each unanswered command hears of that
// once, but for those that last: the next connection carries them out first.
// Down is called once.
func breaksOnce(t *testing.T, r rig) {
	var mu sync.Mutex
	var log []string
	note := func(s string) {
		mu.Lock()
		log = append(log, s)
		mu.Unlock()
	}
	seen := func(want ...string) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.Equal(log, want)
		}
	}
	l := r.connected(t, transport.Config{Up: func() { note("up") }, Down: func(error) { note("down") }})
	r.freeze()
	defer r.thaw() // else Close waits for a node that is frozen
	// The node in memory may just be carrying out a command, as a server may.
	first, last := newCall("SET", "key", "first"), lasting("SET", "key", "last")
	send(l, first, last)
	others := make([]*call, 100)
	for i := range others {
		others[i] = newCall("PING")
		send(l, others[i])
	}
	cause := errors.New("as the test wants it")
	l.Reconnect(cause)
	_, err := first.wait(t)
	require.ErrorIs(t, err, transport.ErrBroken)
	require.ErrorIs(t, err, cause)
	for _, c := range others {
		_, err := c.wait(t)
		require.ErrorIs(t, err, transport.ErrBroken)
	}
	late := newCall("GET", "key")
	_, err = func() (string, error) { send(l, late); return late.wait(t) }()
	require.ErrorIs(t, err, transport.ErrDown)
	require.ErrorIs(t, l.State(time.Now()).Err, transport.ErrDown)
	r.thaw()
	_, err = last.wait(t)
	require.NoError(t, err)
	get := newCall("GET", "key")
	send(l, get)
	v, err := get.wait(t)
	require.NoError(t, err)
	assert.Equal(t, "last", v)
	eventually(t, "up, down, up", seen("up", "down", "up"))
}

// closes: Close waits for answers until its context ends. What is then
// unanswered, or comes later, gets ErrClosed. No goroutine is left: see
// TestMain.
func closes(t *testing.T, r rig) {
	l := r.connected(t, transport.Config{Channel: "ch"})
	first := newCall("PING")
	send(l, first)
	_, err := first.wait(t) // what the transport writes by itself as it connects is over
	require.NoError(t, err)
	get := newCall("PING")
	l.Append(get, transport.Normal) // and no Flush: Close sends it
	require.NoError(t, l.Close(t.Context()))
	_, err = get.wait(t)
	require.NoError(t, err)
	require.NoError(t, l.Close(t.Context()), "again")
	late := newCall("PING")
	send(l, late)
	_, err = late.wait(t)
	require.ErrorIs(t, err, transport.ErrClosed)

	l = r.connected(t, transport.Config{})
	r.freeze()
	defer r.thaw()
	calls := []*call{newCall("PING"), lasting("PING")}
	send(l, calls[0], calls[1])
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorContains(t, l.Close(ctx), "2 commands unanswered")
	for _, c := range calls {
		require.EqualValues(t, 1, c.replies.Load(), "Reply before Close returns")
		require.Error(t, c.err)
	}
	require.ErrorIs(t, l.State(time.Now()).Err, transport.ErrClosed)
}

// hasRoom: a node that hangs is not given more and more. What is urgent has a
// reserve. Room is called when there is room again.
func hasRoom(t *testing.T, r rig) {
	room := make(chan struct{}, 1000)
	// On a busy machine it takes a while.
	l := r.connected(t, transport.Config{Room: func() { room <- struct{}{} }, Stall: time.Minute})
	r.freeze()
	defer r.thaw()
	var taken []*call
	add := func(u transport.Urgency) transport.Fate {
		c := newCall("PING")
		f := l.Append(c, u)
		if f != transport.Full {
			taken = append(taken, c)
		}
		return f
	}
	fill := func(u transport.Urgency) (n int) {
		for ; add(u) != transport.Full; n++ {
			l.Flush()
			require.Less(t, n, 100_000)
		}
		return n
	}
	normal := fill(transport.Normal)
	assert.Greater(t, normal, 100)
	urgent := fill(transport.Urgent)
	assert.Greater(t, urgent, normal/8)
	assert.Equal(t, transport.Full, add(transport.Normal))
	assert.Equal(t, transport.Taken, add(transport.Certain))
	l.Flush()
	s := l.State(time.Now().Add(time.Hour))
	assert.GreaterOrEqual(t, s.Waiting, time.Minute)
	assert.NoError(t, s.Err)
	assert.Empty(t, room)
	r.thaw()
	await(t, room)
	for _, c := range taken {
		_, err := c.wait(t)
		require.NoError(t, err)
	}
	assert.Equal(t, transport.Taken, add(transport.Normal))
	l.Flush()
	_, err := taken[len(taken)-1].wait(t)
	require.NoError(t, err)
}

// hasRoomAfterABreak: what found no room hears of it, too, when the connection
// that had none breaks.
func hasRoomAfterABreak(t *testing.T, r rig) {
	room := make(chan struct{}, 1000)
	l := r.connected(t, transport.Config{Room: func() { room <- struct{}{} }})
	r.freeze()
	defer r.thaw()
	for f := transport.Taken; f == transport.Taken; {
		f = l.Append(newCall("PING"), transport.Normal)
	}
	l.Reconnect(errors.New("as the test wants it"))
	r.thaw()
	await(t, room)
}
