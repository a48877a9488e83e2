package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/redis/go-redis/v9"
	"github.com/samber/lo"
)

// result is what one run has shown.
type result struct {
	Plan     plan
	Began    time.Time
	began    int64 // of now
	Took     time.Duration
	Redis    string
	Resource resourceStats
	Lists    lists // of rivals
	pulse    *pulse
	Excused  int                // violations of liveness while no quorum of servers answered the harness
	Repairs  int                // repairs of nodes that had lost their data
	Rates    map[string]float64 // holds per second under faults, by kind of work
	harmDone
	findings
}

// harness is a run while it goes on.
type harness struct {
	plan     plan
	out      io.Writer
	nodes    []*node // the first ones are the set when the run begins
	roster   *roster
	shown    shown // while it goes on
	wires    wires
	resource *resource
	clients  []*client
	nemesis  *nemesis
	dir      string
	began    time.Time
	times    phases
	left     []violation
	pulse    *pulse // from when all faults had ended
	repairs  int    // of nodes that had lost their data
}

// run carries out a plan. An error says that the run says nothing.
func run(ctx context.Context, p plan, out io.Writer) (*result, error) {
	h := &harness{plan: p, out: out, began: time.Now()}
	r := &result{Plan: p, Began: h.began, began: now()}
	fmt.Fprintf(out, "== %v\n", &p)
	err := h.open(ctx)
	if err == nil {
		r.Redis = h.version(ctx)
		err = h.phases(ctx)
	}
	if err != nil {
		err = errors.Join(err, ctx.Err()) // whatever it was in the middle of
	}
	if h.nemesis != nil {
		r.harmDone, r.Lists = h.nemesis.hasDone(), h.listings()
	}
	stats, cerr := h.close()
	if err = errors.Join(err, cerr); err == nil {
		r.Resource, r.Violations, r.Repairs, r.pulse = stats, h.left, h.repairs, h.pulse
		err = r.judge(ctx, h.dir, h.times)
	}
	r.Took = time.Since(h.began)
	if h.dir != "" {
		if len(r.Violations) > 0 && p.Control == "" {
			err = errors.Join(err, r.Resource.save(filepath.Join(h.dir, "resource.txt")), saveFaults(r.Faults, filepath.Join(h.dir, "faults.txt")),
				r.saveViolations(filepath.Join(h.dir, "violations.txt")))
			fmt.Fprintln(out, "what the clients, the resource and the nemesis have written down is kept in", h.dir)
		} else {
			err = errors.Join(err, os.RemoveAll(h.dir))
		}
	}
	return r, err
}

func (h *harness) open(ctx context.Context) (err error) {
	p := &h.plan
	if h.dir, err = os.MkdirTemp("", "chaos-"); err != nil {
		return err
	}
	if h.nodes, err = startNodes(p.servers(), p.Store, p.clocks()); err != nil {
		return err
	}
	h.roster = newRoster(p.Nodes)
	if h.wires, err = openWires(p.Clients+p.Rivals+operators, h.nodes); err != nil {
		return err
	}
	if h.resource, err = openResource(p.fenced()); err != nil {
		return err
	}
	if err := h.bootstrap(ctx); err != nil {
		return err
	}
	for i := range p.Clients + p.Rivals {
		c := &client{id: i, dir: h.dir, list: h.list, terms: terms{
			Addrs: h.addrs(lo.Range(p.Nodes)), Ways: h.wires.ways(i, h.nodes),
			Resource: h.resource.addr(), Seed: p.Seed, Epoch: now(), Work: p.Work, Each: p.Each, Rate: p.Rate,
			TTL: p.TTL, Guard: p.Guard, Patience: patience, Hold: p.Hold, Control: p.Control,
		}}
		if i >= p.Clients {
			c.terms.Work, c.terms.Each, c.terms.Rate = []string{rival}, 1, 4*p.Rate
			c.list = func(addrs []string) []string { return addrs } // settle gives it each new one
		}
		if err := c.start(); err != nil {
			return err
		}
		h.clients = append(h.clients, c)
	}
	ask := func(i int) (marker, error) { return h.nodes[i].marker() }
	if p.Control == controlRedsync {
		ask = nil
	}
	h.nemesis = &nemesis{
		plan: p.harmPlan, nodes: h.nodes, wires: h.wires, clients: h.clients, orders: h.orders(),
		memory: newMemory(h.roster.all, p.Guard, ask), roster: h.roster,
	}
	return nil
}

// addrs are the addresses of servers.
func (h *harness) addrs(ids []int) []string {
	return lo.Map(ids, func(id int, _ int) string { return h.nodes[id].server.Addr() })
}

func (h *harness) list(addrs []string) []string { return present(h.nodes, h.roster, addrs) }

// listings are the lists of all lives of the rivals.
func (h *harness) listings() lists {
	all := lists{}
	for _, c := range h.clients[h.plan.Clients:] {
		for life, l := range c.lists {
			all[life] = listing{h.nemesis.ids(l.addrs), h.shown.until(l.addrs, l.at)}
		}
	}
	return all
}

// orders are those of the operators, but for what to do.
func (h *harness) orders() []orders {
	p := &h.plan
	return lo.Times(operators, func(i int) orders {
		row := p.Clients + p.Rivals + i
		return orders{Terms: terms{
			Addrs: h.addrs(lo.Range(p.Nodes)), Ways: h.wires.ways(row, h.nodes), Prefix: fmt.Sprintf("o%d", i),
			Seed: p.Seed, TTL: p.TTL, Guard: p.Guard, Control: p.Control,
		}}
	})
}

// bootstrap has the nodes record that they are a set, and declares them ready:
// they are new.
func (h *harness) bootstrap(ctx context.Context) error {
	clients := lo.Map(h.nodes[:h.plan.Nodes], func(n *node, _ int) redis.UniversalClient {
		return redis.NewClient(&redis.Options{Addr: n.server.Addr()})
	})
	defer func() {
		for _, c := range clients {
			_ = c.Close()
		}
	}()
	q, err := quorate.New(clients, e2e.Guarded(h.plan.TTL, h.plan.Guard), quorate.WithSkew(skew), quorate.WithRetention(h.plan.Guard), quorate.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return errors.Join(q.Bootstrap(ctx), q.Close())
}

func (h *harness) version(ctx context.Context) string {
	info, err := h.nodes[0].admin.InfoMap(ctx, "server").Result()
	if err != nil {
		return err.Error()
	}
	return info["Server"]["redis_version"]
}

// phases are: faults; all faults have ended; every client gets everything; all
// end.
func (h *harness) phases(ctx context.Context) error {
	p := &h.plan
	stop := h.progress(ctx)
	defer stop()
	bad, cancel := context.WithTimeout(ctx, p.For)
	if p.Control != controlRedsync {
		repairs, end := watchRepairs(h.nodes, p.Guard, h.roster, &h.shown, h.nemesis.lostSince)
		defer func() {
			end()
			h.left, h.repairs = append(h.left, repairs.found...), repairs.n
		}()
	}
	err := h.nemesis.run(bad)
	cancel()
	if err == nil && ctx.Err() == nil && h.roster.unsettled() {
		if serr := h.nemesis.settle(ctx, nil); serr != nil {
			h.left = append(h.left, violation{What: serr.Error(), Live: true})
		}
	}
	h.left = append(h.left, h.nemesis.found()...)
	if err = errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	h.times.faultsOver = now()
	pulse, end := watchPulse(h.nemesis.voters())
	h.pulse = pulse
	defer func() { end(); h.times.ended = now() }()
	for _, c := range h.clients {
		h.blame(c, errors.Join(c.keepUp(), c.beCalm()))
	}
	// What may still be: a node that is within its guard time, a lease of a
	// client that died, a long hold.
	wait(ctx, p.Guard+2*p.TTL)
	h.times.well = now()
	if wait(ctx, p.Calm); ctx.Err() != nil {
		return ctx.Err()
	}
	errs := make([]error, len(h.clients))
	var all sync.WaitGroup
	for i, c := range h.clients {
		all.Go(func() { errs[i] = c.finish(5 * patience) })
	}
	all.Wait()
	for i, c := range h.clients {
		h.blame(c, errs[i])
		if n := c.crashes.Load(); n > 0 {
			h.blame(c, fmt.Errorf("has ended by itself %d times", n))
		}
	}
	h.clean(ctx)
	return ctx.Err()
}

// blame makes a violation of what a client has done that it should not.
func (h *harness) blame(c *client, err error) {
	if err != nil {
		h.left = append(h.left, violation{What: fmt.Sprintf("client %d: %v", c.id, err)})
	}
}

// clean sees what the clients have left on the servers: for no longer than a
// claim's lease, should the last word to a node have been lost.
func (h *harness) clean(ctx context.Context) {
	for _, n := range lo.Filter(h.nodes, func(n *node, _ int) bool { return n.server.Running() }) {
		var left []string
		var err error
		for end := time.Now().Add(2 * h.plan.TTL); ; wait(ctx, 50*time.Millisecond) {
			left, err = n.leftovers(ctx, h.roster.has(n.id))
			if err == nil && len(left) == 0 || time.Now().After(end) || ctx.Err() != nil {
				break
			}
		}
		if err != nil {
			left = append(left, err.Error())
		}
		for _, l := range left {
			h.left = append(h.left, violation{What: fmt.Sprintf("left on node %d: %s", n.id, l), Key: strings.HasPrefix(l, "key "), Live: true})
		}
	}
}

// close ends all that is there, however far it came.
func (h *harness) close() (stats resourceStats, err error) {
	for _, c := range h.clients {
		err = errors.Join(err, c.kill())
	}
	if h.resource != nil {
		stats = h.resource.close()
	}
	h.wires.close()
	return stats, errors.Join(err, closeNodes(h.nodes))
}

// progress says each few seconds how far it has come.
func (h *harness) progress(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(5 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			var held, refused int64
			for _, c := range h.clients {
				d, f := c.counts()
				held, refused = held+d, refused+f
			}
			faults := h.nemesis.faults()
			last := "none yet"
			if len(faults) > 0 {
				last = faults[len(faults)-1].String()
			}
			fmt.Fprintf(h.out, "%5.0fs  %d holds, %d refusals, %d faults (%d now); %s\n",
				time.Since(h.began).Seconds(), held, refused, len(faults), h.nemesis.underWay(), last)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
