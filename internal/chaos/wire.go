package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"
	"github.com/rs/zerolog"
)

// wire is the way from one client to one node: a proxy, with a valve for each
// direction. One for each pair, so that a partition can part clients too.
type wire struct {
	proxy *toxiproxy.Proxy
	asks  *valve // from the client to the node
	tells *valve // from the node to the client
}

func (w *wire) url() string { return "redis://" + w.proxy.Listen }

// wires[client][node]
type wires [][]*wire

func openWires(clients int, nodes []*node) (wires, error) {
	var all wires
	for c := range clients {
		row := []*wire{}
		for _, n := range nodes {
			w, err := openWire(fmt.Sprintf("c%d-n%d", c, n.id), n.server.Addr())
			if err != nil {
				wires{row}.close()
				all.close()
				return nil, err
			}
			row = append(row, w)
		}
		all = append(all, row)
	}
	return all, nil
}

var proxies = toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())

func openWire(name, addr string) (*wire, error) {
	w := &wire{proxy: toxiproxy.NewProxy(proxies, name, "127.0.0.1:0", addr), asks: newValve(), tells: newValve()}
	for direction, v := range map[string]*valve{"upstream": w.asks, "downstream": w.tells} {
		description := fmt.Sprintf(`{"type":%q,"stream":%q,"attributes":{"id":%d}}`, valveType, direction, v.id)
		if _, err := w.proxy.Toxics.AddToxicJson(strings.NewReader(description)); err != nil {
			return nil, err
		}
	}
	return w, w.proxy.Start()
}

func (ws wires) close() {
	for _, row := range ws {
		for _, w := range row {
			w.proxy.Stop()
			w.asks.discard()
			w.tells.discard()
		}
	}
}

// ways says which directions of a wire are meant.
type ways int

const (
	asking ways = 1 << iota
	telling
	both = asking | telling
)

// set puts a toxic on the wires between some clients and some nodes.
func (ws wires) set(clients, nodes []int, which ways, toxic toxics.Toxic) {
	for _, c := range clients {
		for _, n := range nodes {
			if which&asking != 0 {
				ws[c][n].asks.turn(toxic, commands, pushes)
			}
			if which&telling != 0 {
				ws[c][n].tells.turn(toxic, commands, pushes)
			}
		}
	}
}

// cut ends all connections between some clients and all nodes, and reports how many
// there were. New connections pass, or suffer what is imposed on them.
func (ws wires) cut(clients []int) (ended int) {
	for _, c := range clients {
		for _, w := range ws[c] {
			w.asks.cut()
			ended += w.tells.cut()
		}
	}
	return ended
}

// The toxics, beside toxiproxy's own. A value may serve many links.
var (
	pass = &toxics.NoopToxic{}
	// lose drops what comes. TCP does not go on after that, so the connection
	// ends when the toxic does, as after a partition that outlasted the kernel.
	lose = &toxics.TimeoutToxic{}
	// hold keeps what comes, in order, and delivers it when the toxic goes: a
	// partition that TCP survives. The messages are then as late as can be.
	hold = &toxics.LatencyToxic{Latency: time.Hour.Milliseconds()}
	slow = &toxics.LatencyToxic{Latency: 50, Jitter: 10}
)

// lossy stands for a network that loses packets. TCP hides a loss, except for
// the time until it sends again: at least 200 ms on Linux, then twice as much.
// What follows on the connection waits as long.
type lossy struct{ Percent int }

const resend = 200 * time.Millisecond

// Pipe is the toxic's.
func (l *lossy) Pipe(stub *toxics.ToxicStub) {
	for {
		select {
		case <-stub.Interrupt:
			return
		case c := <-stub.Input:
			if c == nil {
				stub.Close()
				return
			}
			var late time.Duration
			for again := resend; rand.IntN(100) < l.Percent; again *= 2 {
				late += again
			}
			select {
			case <-time.After(late):
			case <-stub.Interrupt:
				stub.Output <- c
				return
			}
			stub.Output <- c
		}
	}
}

// valve lets the harness change which toxic a link runs. It is a toxic itself,
// which is there from the first connection to the last: toxiproxy's own way to
// add and remove one while data flows takes a lock that every ending connection
// needs, too, and can block for ever when a process is killed at that moment.
type valve struct {
	id int

	mu      sync.Mutex
	toxics  [kindsOfConns]toxics.Toxic
	changed chan struct{} // closed when there are others
	ended   chan struct{} // closed to end the links that there are
	links   int
}

const valveType = "valve"

// valves finds a valve by its number: toxiproxy makes toxics from JSON.
var valves = struct {
	sync.Mutex
	last int
	all  map[int]*valve
}{all: map[int]*valve{}}

func newValve() *valve {
	valves.Lock()
	defer valves.Unlock()
	valves.last++
	v := &valve{id: valves.last, toxics: [kindsOfConns]toxics.Toxic{pass, pass}, changed: make(chan struct{}), ended: make(chan struct{})}
	valves.all[v.id] = v
	return v
}

func (v *valve) discard() {
	valves.Lock()
	defer valves.Unlock()
	delete(valves.all, v.id)
}

// turn changes the toxic of all links of some kinds, those that are open and those to come.
func (v *valve) turn(t toxics.Toxic, kinds ...connKind) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, k := range kinds {
		v.toxics[k] = t
	}
	close(v.changed)
	v.changed = make(chan struct{})
}

// cut ends the links that are open, and reports how many those are.
func (v *valve) cut() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	close(v.ended)
	v.ended = make(chan struct{})
	return v.links
}

func (v *valve) current(k connKind) (toxics.Toxic, chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.toxics[k], v.changed
}

// open counts a link, and returns what is closed to end it.
func (v *valve) open() (ended chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.links++
	return v.ended
}

func (v *valve) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.links--
}

// valveToxic is a valve as toxiproxy sees it.
type valveToxic struct {
	ID int `json:"id"`
}

func init() { toxics.Register(valveType, &valveToxic{}) }

// GetBufferSize makes room for what a toxic holds back.
func (*valveToxic) GetBufferSize() int { return 1024 }

// Pipe runs one toxic after the other.
func (t *valveToxic) Pipe(stub *toxics.ToxicStub) {
	valves.Lock()
	v := valves.all[t.ID]
	valves.Unlock()
	ended := v.open()
	defer v.close()
	in := newSniffer(stub.Input)
	kind, found := commands, in.found
	for {
		toxic, changed := v.current(kind)
		inner := toxics.NewToxicStub(in.out, stub.Output)
		if s, ok := toxic.(toxics.StatefulToxic); ok {
			inner.State = s.NewState()
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			toxic.Pipe(inner)
		}()
		stop := func() {
			select {
			case inner.Interrupt <- struct{}{}:
				<-done
			case <-done:
			}
		}
		select {
		case <-done:
		case <-found:
			kind, found = pushes, nil
			stop()
		case <-ended:
			stop()
			inner.Close()
		case <-changed:
			stop()
			if c, ok := toxic.(toxics.CleanupToxic); ok && !inner.Closed() {
				c.Cleanup(inner)
			}
		}
		if inner.Closed() {
			drain(in.out)
			return
		}
	}
}

// drain reads what nobody wants any more, so that nobody waits to write it.
func drain(in <-chan *stream.StreamChunk) {
	for range in {
	}
}
