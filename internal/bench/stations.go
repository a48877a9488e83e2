package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/samber/lo"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/bench/libraries"
	"github.com/quorate/quorate/internal/bench/report"
	"github.com/quorate/quorate/internal/bench/servers"
)

// stations are the consecutive parts of one call. Together they make up the
// whole call.
type stations struct {
	call    time.Duration // from the call until the first write begins
	writes  time.Duration // inside writes
	between time.Duration // between writes
	wait    time.Duration // from the last write until the deciding answer has been read
	back    time.Duration // from then until the call returns
}

// whole returns how long the call took.
func (s stations) whole() time.Duration { return s.call + s.writes + s.between + s.wait + s.back }

// split divides a call, using the requests that it sent to the nodes. The
// deciding answer is the one that completes a quorum. If it arrives before the
// last write has ended, there is no wait. split reports false if the record
// lacks that answer.
func (call span) split(asked []exchange, quorum int) (s stations, ok bool) {
	var answers []time.Duration
	for _, x := range asked {
		if x.answered != 0 {
			answers = append(answers, x.answered)
		}
	}
	if len(answers) < quorum {
		return s, false
	}
	slices.Sort(answers)
	decided := answers[quorum-1]
	if decided > call.ended {
		return s, false
	}
	asked = slices.SortedFunc(slices.Values(asked),
		func(a, b exchange) int { return int(a.written.begun - b.written.begun) })
	at := asked[0].written.begun
	s.call = at - call.begun
	for _, x := range asked {
		begun, ended := max(at, x.written.begun), min(call.ended, x.written.ended)
		s.between += max(0, begun-at)
		s.writes += max(0, ended-begun)
		at = max(begun, ended)
	}
	s.wait = max(0, decided-at)
	s.back = call.ended - max(at, decided)
	return s, true
}

// divide finds the requests of each call, in order of time, and divides the
// call. It leaves out calls that did not ask each node exactly once: they took
// more than one round, or the process asked for something else meanwhile.
func divide(calls []span, scripts [][]exchange, nodes int) []stations {
	next := make([]int, len(scripts))
	var all []stations
	for _, call := range calls {
		var asked []exchange
		once := true
		for c, of := range scripts {
			begun := next[c]
			for ; next[c] < len(of) && of[next[c]].written.begun < call.ended; next[c]++ {
				if of[next[c]].written.begun < call.begun {
					begun = next[c] + 1
				}
			}
			once = once && next[c]-begun <= 1
			asked = append(asked, of[begun:next[c]]...)
		}
		if !once || len(asked) != nodes {
			continue
		}
		if s, ok := call.split(asked, nodes/2+1); ok {
			all = append(all, s)
		}
	}
	return all
}

// The sides of the table.
const (
	lockSide   = "Lock"
	lockP90    = "Lock, p90"
	unlockSide = "Unlock"
	unlockP90  = "Unlock, p90"
)

// whereTime measures where the time of a single lock and its unlock goes.
func whereTime(n int) bench {
	s := scenario{Nodes: n, Clients: 1}
	return bench{
		Name: "stations/" + strconv.Itoa(n), Group: "stations", X: float64(n), Title: s.title(),
		Show: []string{report.ToFirstWrite, report.InWrites, report.BetweenWrites, report.ToAnswer, report.InScript,
			report.ToReturn, report.InAll},
		open: func(ctx context.Context, st *stage) error {
			nodes, err := st.start(n)
			if err != nil {
				return err
			}
			if err := bootstrap(ctx, nodes); err != nil {
				return err
			}
			// One turn measures all sides.
			var last map[string]report.Figures
			for _, name := range []string{lockSide, lockP90, unlockSide, unlockP90} {
				st.sides = append(st.sides, side{name,
					func(ctx context.Context, d time.Duration) (_ report.Figures, err error) {
						if name == lockSide {
							last, err = watchCalls(ctx, nodes, d)
						}
						return last[name], err
					}})
			}
			st.profile = func(ctx context.Context, d time.Duration) ([]report.Frame, error) {
				return s.flame(ctx, nodes, d)
			}
			return nil
		},
	}
}

// watchCalls locks and unlocks for d, over tapped connections.
func watchCalls(ctx context.Context, n servers.Nodes, d time.Duration) (map[string]report.Figures, error) {
	ctx, cancel := context.WithTimeout(ctx, d+45*time.Second)
	defer cancel()
	t := newTap()
	inScripts, locks, unlocks, err := lockTapped(ctx, n, t, d)
	if err != nil {
		return nil, err
	}
	scripts, err := t.scripts()
	if err != nil {
		return nil, err
	}
	found := map[string]report.Figures{}
	for _, of := range []struct {
		name, name90 string
		calls        []span
	}{{lockSide, lockP90, locks}, {unlockSide, unlockP90, unlocks}} {
		all := divide(of.calls, scripts, n.Len())
		if len(all) == 0 {
			return nil, fmt.Errorf("%s: none of %d calls has asked each node once", of.name, len(of.calls))
		}
		found[of.name], found[of.name90] = percentile(all, 50), percentile(all, 90)
		found[of.name][report.InScript] = inScripts[of.name]
	}
	return found, nil
}

// percentile returns the p-th percentile of each station separately.
func percentile(all []stations, p int) report.Figures {
	f := report.Figures{}
	for name, of := range map[string]func(stations) time.Duration{
		report.ToFirstWrite:  func(s stations) time.Duration { return s.call },
		report.InWrites:      func(s stations) time.Duration { return s.writes },
		report.BetweenWrites: func(s stations) time.Duration { return s.between },
		report.ToAnswer:      func(s stations) time.Duration { return s.wait },
		report.ToReturn:      func(s stations) time.Duration { return s.back },
		report.InAll:         stations.whole,
	} {
		v := lo.Map(all, func(s stations, _ int) time.Duration { return of(s) })
		slices.Sort(v)
		f[name] = report.Micros(v[len(v)*p/100])
	}
	f[report.InScript] = math.NaN() // only the mean is known
	return f
}

// bootstrap makes new nodes vote, for the clients to come.
func bootstrap(ctx context.Context, n servers.Nodes) error {
	q, err := libraries.Connect(ctx, n)
	if err != nil {
		return err
	}
	return q.Close()
}

// lockTapped makes one caller lock and unlock for d, and returns when each call
// began and ended. The nodes must already vote. When it returns, all
// connections are closed.
func lockTapped(ctx context.Context, n servers.Nodes, t *tap,
	d time.Duration) (inScripts map[string]float64, locks, unlocks []span, err error) {
	clients := lo.Map(n.Ways, func(addr string, _ int) redis.UniversalClient {
		return redis.NewClient(&redis.Options{Addr: addr, Dialer: t.dial})
	})
	defer func() {
		for _, c := range clients {
			err = errors.Join(err, c.Close())
		}
	}()
	q, err := quorate.New(clients, quorate.WithTTL(libraries.TTL),
		quorate.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, nil, nil, err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	c := libraries.ClientOf(q)
	if inScripts, err = scriptTimes(ctx, n, c, d/4); err != nil {
		return nil, nil, nil, err
	}
	runtime.GC() // do not measure earlier garbage
	m := c.Mutex("alone")
	const least = 100 // in case the machine is busy for longer than d
	for until := t.now() + d; t.now() < until || len(locks) < least; {
		called := t.now()
		if err := m.Lock(ctx); err != nil {
			return nil, nil, nil, err
		}
		locked := t.now()
		if err := m.Unlock(ctx); err != nil {
			return nil, nil, nil, err
		}
		locks = append(locks, span{called, locked})
		unlocks = append(unlocks, span{locked, t.now()})
	}
	return inScripts, locks, unlocks, nil
}

// scriptTimes returns how many microseconds a node spends in a script on
// average. The node's counters do not distinguish scripts, so locks and unlocks
// are done in separate groups here.
func scriptTimes(ctx context.Context, n servers.Nodes, c libraries.Client,
	d time.Duration) (map[string]float64, error) {
	const many = 16
	var ms []libraries.Locker
	for i := range many {
		ms = append(ms, c.Mutex("of many "+strconv.Itoa(i)))
	}
	busy, calls := map[string]float64{}, map[string]float64{}
	before := n.Account(ctx)
	turn := func(name string, f func(libraries.Locker) error) error {
		for _, m := range ms {
			if err := f(m); err != nil {
				return err
			}
		}
		after := n.Account(ctx)
		busy[name] += servers.Sum(after.Busy, libraries.ByScript) - servers.Sum(before.Busy, libraries.ByScript)
		calls[name] += servers.Sum(after.Calls, libraries.ByScript) - servers.Sum(before.Calls, libraries.ByScript)
		before = after
		return nil
	}
	for began := time.Now(); len(calls) == 0 || time.Since(began) < d; {
		if err := turn(lockSide, func(m libraries.Locker) error { return m.Lock(ctx) }); err != nil {
			return nil, err
		}
		if err := turn(unlockSide, func(m libraries.Locker) error { return m.Unlock(ctx) }); err != nil {
			return nil, err
		}
	}
	return map[string]float64{lockSide: busy[lockSide] / calls[lockSide],
		unlockSide: busy[unlockSide] / calls[unlockSide]}, nil
}
