package main

import (
	"context"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/bench/report"
	"github.com/quorate/quorate/internal/bench/servers"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

func asked(begun, ended, answered time.Duration) exchange {
	return exchange{word: "EVALSHA", written: span{begun, ended}, answered: answered}
}

func TestSplit(t *testing.T) {
	call := span{100, 200}
	for _, c := range []struct {
		name   string
		asked  []exchange
		quorum int
		want   stations
	}{
		{"one node", []exchange{asked(110, 115, 170)}, 1, stations{call: 10, writes: 5, wait: 55, back: 30}},
		{"the third of five decides", []exchange{asked(110, 115, 190), asked(116, 120, 150), asked(120, 125, 140),
			asked(125, 126, 0), asked(126, 130, 160)}, 3,
			stations{call: 10, writes: 19, between: 1, wait: 30, back: 40}},
		{"it comes before the last write has ended",
			[]exchange{asked(110, 120, 125), asked(121, 130, 135), asked(140, 150, 0)}, 2,
			stations{call: 10, writes: 29, between: 11, wait: 0, back: 50}},
		{"writes at the same time count once",
			[]exchange{asked(112, 120, 150), asked(110, 115, 150), asked(113, 114, 150)}, 2,
			stations{call: 10, writes: 10, wait: 30, back: 50}},
		{"a write ends after the call", []exchange{asked(110, 120, 150), asked(120, 130, 150), asked(130, 230, 0)},
			2,
			stations{call: 10, writes: 90}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := call.split(c.asked, c.quorum)
			require.True(t, ok)
			require.Equal(t, c.want, got)
			require.Equal(t, call.ended-call.begun, got.whole())
		})
	}
	for name, of := range map[string][]exchange{
		"not enough answers":            {asked(110, 115, 150), asked(115, 116, 0), asked(116, 117, 0)},
		"they come after the call does": {asked(110, 115, 150), asked(115, 116, 201), asked(116, 117, 202)},
	} {
		_, ok := call.split(of, 2)
		require.False(t, ok, name)
	}
}

// Whatever a call has asked when, its stations add up to how long it took, and
// none is negative.
func TestStationsAddUp(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	divided := 0
	for range 20_000 {
		call := span{1000, 1000 + time.Duration(1+r.IntN(300))}
		within := func() time.Duration { return call.begun + time.Duration(r.Int64N(int64(call.ended-call.begun))) }
		nodes := 1 + 2*r.IntN(4)
		var all []exchange
		for range nodes {
			begun := within()
			ended := begun + time.Duration(r.IntN(50))
			all = append(all, asked(begun, ended, begun+time.Duration(r.IntN(150))))
		}
		s, ok := call.split(all, nodes/2+1)
		if !ok {
			continue
		}
		divided++
		require.Equal(t, call.ended-call.begun, s.whole(), "%v %v", call, all)
		for _, d := range []time.Duration{s.call, s.writes, s.between, s.wait, s.back} {
			require.GreaterOrEqual(t, d, time.Duration(0), "%v %v: %v", call, all, s)
		}
	}
	require.Greater(t, divided, 5000)
}

// A call has what was written while it was there. One that has not asked each
// node once is left out.
func TestDivide(t *testing.T) {
	calls := []span{{100, 200}, {200, 300}, {300, 400}, {400, 500}, {500, 600}}
	all := divide(calls, [][]exchange{
		{asked(50, 60, 70), asked(110, 111, 120), asked(220, 221, 230), asked(230, 231, 240), asked(320, 321, 330),
			asked(440, 441, 450), asked(550, 551, 560)},
		{asked(120, 121, 130), asked(210, 211, 230), asked(410, 411, 420), asked(550, 551, 560)},
		{asked(130, 131, 240), asked(230, 231, 240), asked(310, 311, 320),
			asked(430, 431, 460), asked(550, 551, 560)},
		{asked(590, 591, 0)}, // a connection beside them, for something else
	}, 3)
	require.Equal(t, []stations{
		{call: 10, writes: 3, between: 18, wait: 0, back: 69},
		{call: 10, writes: 3, between: 28, wait: 9, back: 50},
	}, all)
}

// Answers are paired with commands however they were cut into reads, and what
// a node says unasked is no answer. The read that had an answer's end is when
// it was there.
func TestExchanges(t *testing.T) {
	c := &tapped{tap: newTap()}
	write := func(at time.Duration, words ...string) { c.out.add(at, at+1, resp.AppendCommand(nil, words...)) }
	read := func(at time.Duration, bytes string) { c.back.add(at-1, at, []byte(bytes)) }
	write(10, "SUBSCRIBE", "news")
	write(20, "evalsha", "abc", "0")
	write(30, "PING")
	write(40, "EVALSHA", "def", "0")
	write(50, "EVALSHA", "ghi", "0")
	read(60, ">3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n$")
	read(70, "3\r\nyes\r\n>3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\nx\r\n+PO")
	read(80, "NG\r\n-ERR no\r\n:")
	all, err := c.exchanges()
	require.NoError(t, err)
	require.Equal(t, []exchange{
		{"SUBSCRIBE", span{10, 11}, 60}, {"EVALSHA", span{20, 21}, 70}, {"PING", span{30, 31}, 80},
		{"EVALSHA", span{40, 41}, 80}, {"EVALSHA", span{50, 51}, 0},
	}, all)

	read(90, "1\r\n+unasked\r\n")
	_, err = c.exchanges()
	require.ErrorContains(t, err, "more answers than commands")
}

// A tapped connection passes everything on.
func TestTap(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	go func() {
		if nc, err := l.Accept(); err == nil {
			_, _ = io.CopyN(nc, nc, 4)
			_ = nc.Close()
		}
	}()
	tap := newTap()
	before := tap.now()
	c, err := tap.dial(t.Context(), "tcp", l.Addr().String())
	require.NoError(t, err)
	_, err = c.Write([]byte("echo"))
	require.NoError(t, err)
	got, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Equal(t, "echo", string(got))
	require.NoError(t, c.Close())
	require.Equal(t, "echo", string(tap.conns[0].out.bytes))
	require.Equal(t, "echo", string(tap.conns[0].back.bytes))
	w, r := tap.conns[0].out.parts[0], tap.conns[0].back.parts[0]
	require.True(t, before <= w.begun && w.begun <= w.ended && w.begun <= r.ended && r.begun <= r.ended)
}

// The calls of a real lock are divided, and lie one behind the other.
func TestWatchCalls(t *testing.T) {
	for _, size := range []int{1, 5} {
		n := servers.Direct(redistest.Start(t, size))
		tap := newTap()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.NoError(t, bootstrap(ctx, n))
		_, locks, unlocks, err := lockTapped(ctx, n, tap, 100*time.Millisecond)
		require.NoError(t, err)
		scripts, err := tap.scripts()
		require.NoError(t, err)
		for _, calls := range [][]span{locks, unlocks} {
			all := divide(calls, scripts, size)
			require.NotEmpty(t, all)
			var sum time.Duration
			for _, s := range all {
				sum += s.whole()
				require.Positive(t, s.call)
				require.Positive(t, s.writes)
				require.GreaterOrEqual(t, s.back, time.Duration(0))
			}
			require.LessOrEqual(t, sum, calls[len(calls)-1].ended-calls[0].begun)
		}

		found, err := watchCalls(ctx, n, 50*time.Millisecond)
		require.NoError(t, err)
		for _, name := range []string{lockSide, unlockSide} {
			require.Positive(t, found[name][report.InScript])
			require.Less(t, found[name][report.ToFirstWrite], found[name][report.InAll])
			require.LessOrEqual(t, found[name][report.InAll], found[name+", p90"][report.InAll])
			require.True(t, math.IsNaN(found[name+", p90"][report.InScript]))
		}
	}
}
