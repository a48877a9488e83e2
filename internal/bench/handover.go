package main

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/quorate/quorate/internal/bench/libraries"
	"github.com/quorate/quorate/internal/bench/report"
	"github.com/quorate/quorate/internal/bench/servers"
	"github.com/quorate/quorate/internal/resp"
	"github.com/samber/lo"
)

// queueing is how long the next client has to get in line. That takes much
// less. If the time is not enough, the hand-over appears longer than it is.
const queueing = 2 * time.Millisecond

// handover measures the time from the beginning of an unlock until the next
// client has the lock.
func handover(n int, names ...string) bench {
	return bench{
		Name: "handover/" + strconv.Itoa(n), Group: "handover", Show: []string{report.HandOver, report.HandOverP99},
		Title: fmt.Sprintf("hand-over, N=%d", n),
		open: func(ctx context.Context, st *stage) error {
			nodes, err := st.start(n)
			if err != nil {
				return err
			}
			for _, l := range libraries.Of(libraries.Working) {
				if !slices.Contains(names, l.Name) || !st.libs.MatchString(l.Name) {
					continue
				}
				if err := twoProcesses(ctx, st, l, nodes); err != nil {
					return fmt.Errorf("%s: %w", l.Name, err)
				}
			}
			return hops(st, nodes)
		},
	}
}

// twoProcesses adds a pair of clients that share only the nodes, and a pair
// within one process if the library supports that.
func twoProcesses(ctx context.Context, st *stage, l libraries.Library, n servers.Nodes) error {
	var ms [2]libraries.Locker
	var first libraries.Client
	for i := range ms {
		c, err := l.Open(ctx, n)
		if err != nil {
			return err
		}
		st.onClose(c.Close)
		ms[i] = c.Mutex(l.Name)
		first = lo.Ternary(i == 0, c, first)
	}
	p := pair{ms: ms}
	st.sides = append(st.sides, side{l.Name, p.turn})
	if l.Shares {
		one := first.Mutex("one process")
		p := pair{ms: [2]libraries.Locker{one, one}}
		st.sides = append(st.sides, side{l.Name + ", in one process", p.turn})
	}
	return nil
}

// pair is two clients that pass a lock back and forth.
type pair struct {
	ms    [2]libraries.Locker
	guard libraries.Guard
}

func (p *pair) turn(ctx context.Context, d time.Duration) (report.Figures, error) {
	type got struct {
		at  time.Time
		err error
	}
	if err := libraries.Insist(ctx, p.ms[0]); err != nil {
		return nil, err
	}
	if err := p.guard.Enter(p.ms[0]); err != nil {
		return nil, err
	}
	var took []time.Duration
	holder := 0
	for end := time.Now().Add(d); time.Now().Before(end); holder = 1 - holder {
		next := make(chan got, 1)
		go func() {
			err := libraries.Insist(ctx, p.ms[1-holder])
			next <- got{time.Now(), err}
		}()
		time.Sleep(queueing)
		p.guard.Leave(p.ms[holder])
		began := time.Now()
		if err := p.ms[holder].Unlock(ctx); err != nil {
			return nil, err
		}
		g := <-next
		if g.err != nil {
			return nil, g.err
		}
		if err := p.guard.Enter(p.ms[1-holder]); err != nil {
			return nil, err
		}
		took = append(took, g.at.Sub(began))
	}
	p.guard.Leave(p.ms[holder])
	return handOvers(took), p.ms[holder].Unlock(ctx)
}

func handOvers(took []time.Duration) report.Figures {
	slices.Sort(took)
	return report.Figures{report.HandOver: report.Micros(took[len(took)/2]),
		report.HandOverP99: report.Micros(took[len(took)*99/100])}
}

// hops adds the floor of a hand-over between processes: a message published to
// one subscriber, by one node, and by all nodes until a majority has arrived.
func hops(st *stage, n servers.Nodes) error {
	for _, h := range []struct {
		name        string
		nodes, need int
	}{{report.HopName, 1, 1}, {report.HopsName, n.Len(), n.Len()/2 + 1}} {
		if h.name == report.HopsName && h.nodes == 1 {
			continue
		}
		p := &hop{need: h.need, heard: make(chan hopped, 64)}
		st.onClose(p.close)
		for _, addr := range n.Ways[:h.nodes] {
			if err := p.connect(addr); err != nil {
				return err
			}
		}
		st.sides = append(st.sides, side{h.name, p.turn})
	}
	return nil
}

// hop is a publisher and a subscriber, on raw connections.
type hop struct {
	need    int
	number  int
	senders []net.Conn
	readers []net.Conn
	heard   chan hopped
	over    []chan struct{}
}

type hopped struct {
	number string
	at     time.Time
}

func (h *hop) connect(addr string) error {
	sender, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	h.senders = append(h.senders, sender)
	reader, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	h.readers = append(h.readers, reader)
	in := resp.NewReader(reader)
	if _, err := reader.Write(resp.AppendCommand(nil, "SUBSCRIBE", "hop")); err != nil {
		return err
	}
	if _, err := in.Read(); err != nil { // subscribed
		return err
	}
	// The sender's replies carry no information that the message does not.
	replies := resp.NewReader(sender)
	h.listen(func() error { _, err := replies.Read(); return err })
	h.listen(func() error {
		v, err := in.Read()
		if err == nil {
			h.heard <- hopped{number: string(v[len(v)-1].Str), at: time.Now()}
		}
		return err
	})
	return nil
}

// listen calls f until its connection is closed.
func (h *hop) listen(f func() error) {
	over := make(chan struct{})
	h.over = append(h.over, over)
	go func() {
		defer close(over)
		for err := f(); err == nil; err = f() {
		}
	}()
}

func (h *hop) turn(ctx context.Context, d time.Duration) (report.Figures, error) {
	var took []time.Duration
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(queueing) // the same pause as between two hand-overs of a lock
		h.number++
		number := strconv.Itoa(h.number)
		command := resp.AppendCommand(nil, "PUBLISH", "hop", number)
		began := time.Now()
		for _, s := range h.senders {
			if _, err := s.Write(command); err != nil {
				return nil, err
			}
		}
		for heard := 0; heard < h.need; {
			select {
			case m := <-h.heard:
				if m.number != number {
					continue // from a node that was not needed
				}
				if heard++; heard == h.need {
					took = append(took, m.at.Sub(began))
				}
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	}
	return handOvers(took), nil
}

func (h *hop) close() {
	for _, c := range slices.Concat(h.senders, h.readers) {
		_ = c.Close()
	}
	for _, over := range h.over {
		for open := true; open; {
			select {
			case <-h.heard: // a late message that no hop waits for
			case <-over:
				open = false
			}
		}
	}
}
