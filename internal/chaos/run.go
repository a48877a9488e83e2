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
	"github.com/quorate/quorate/internal/chaos/client"
	"github.com/quorate/quorate/internal/chaos/fleet"
	"github.com/quorate/quorate/internal/chaos/judge"
	"github.com/quorate/quorate/internal/chaos/nemesis"
	"github.com/quorate/quorate/internal/chaos/record"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/redis/go-redis/v9"
	"github.com/samber/lo"
)

// harness is a run in progress.
type harness struct {
	plan     plan
	out      io.Writer
	nodes    []*fleet.Node // the first nodes are the set when the run begins
	roster   *fleet.Roster
	shown    fleet.Shown // while it goes on
	wires    fleet.Wires
	resource *record.Resource
	clients  []*client.Client
	nemesis  *nemesis.Nemesis
	dir      string
	began    time.Time
	times    judge.Phases
	left     []judge.Violation
	pulse    *fleet.Pulse // started when all faults had ended
	repairs  int          // repairs of nodes that had lost their data
}

// run carries out a plan. An error means that the run is inconclusive.
func run(ctx context.Context, p plan, out io.Writer) (*result, error) {
	h := &harness{plan: p, out: out, began: time.Now()}
	r := &result{Plan: p, Began: h.began, began: record.Now()}
	fmt.Fprintf(out, "== %v\n", &p)
	err := h.open(ctx)
	if err == nil {
		r.Redis = h.version(ctx)
		err = h.phases(ctx)
	}
	if err != nil {
		err = errors.Join(err, ctx.Err()) // an interrupt makes the run inconclusive
	}
	if h.nemesis != nil {
		r.Summary, r.Lists = h.nemesis.Summary(), h.listings()
	}
	stats, cerr := h.close()
	if err = errors.Join(err, cerr); err == nil {
		r.Resource, r.Violations, r.Repairs, r.pulse = stats, h.left, h.repairs, h.pulse
		err = r.judge(ctx, h.dir, h.times)
	}
	r.Took = time.Since(h.began)
	if h.dir != "" {
		if len(r.Violations) > 0 && p.Control == "" {
			err = errors.Join(err, r.Resource.Save(filepath.Join(h.dir, "resource.txt")),
				saveFaults(r.Faults, filepath.Join(h.dir, "faults.txt")),
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
	if h.nodes, err = fleet.Start(p.Servers(), p.Store, p.Clocks()); err != nil {
		return err
	}
	h.roster = fleet.NewRoster(p.Nodes)
	if h.wires, err = fleet.OpenWires(p.Clients+p.Rivals+nemesis.Operators, h.nodes); err != nil {
		return err
	}
	if h.resource, err = record.OpenResource(p.fenced()); err != nil {
		return err
	}
	if err := h.bootstrap(ctx); err != nil {
		return err
	}
	for i := range p.Clients + p.Rivals {
		c := &client.Client{ID: i, Dir: h.dir, Present: h.list, Terms: client.Terms{
			Addrs: h.addrs(lo.Range(p.Nodes)), Ways: h.wires.Ways(i, h.nodes),
			Resource: h.resource.Addr(), Seed: p.Seed, Epoch: record.Now(), Work: p.Work,
			Each: p.Each, Rate: p.Rate,
			TTL: p.TTL, Guard: p.Guard, Patience: client.Patience, Hold: p.Hold, Control: p.Control,
		}}
		if i >= p.Clients {
			c.Terms.Work, c.Terms.Each, c.Terms.Rate = []string{record.Rival}, 1, 4*p.Rate
			c.Present = func(addrs []string) []string { return addrs } // Settle gives a rival each new list
		}
		if err := c.Start(); err != nil {
			return err
		}
		h.clients = append(h.clients, c)
	}
	ask := func(i int) (fleet.Marker, error) { return h.nodes[i].Marker() }
	if p.Control == client.ControlRedsync {
		ask = nil
	}
	h.nemesis = &nemesis.Nemesis{
		Plan: p.Plan, Nodes: h.nodes, Wires: h.wires, Clients: h.clients, Orders: h.orders(),
		Memory: fleet.NewMemory(h.roster.All, p.Guard, ask), Roster: h.roster,
	}
	return nil
}

// addrs returns the addresses of the given servers.
func (h *harness) addrs(ids []int) []string {
	return lo.Map(ids, func(id int, _ int) string { return h.nodes[id].Server.Addr() })
}

func (h *harness) list(addrs []string) []string { return fleet.Present(h.nodes, h.roster, addrs) }

// listings returns the lists of all lives of the rivals.
func (h *harness) listings() judge.Lists {
	all := judge.Lists{}
	for _, c := range h.clients[h.plan.Clients:] {
		for life, l := range c.Lists {
			all[life] = judge.Listing{Nodes: h.nemesis.IDs(l.Addrs), Until: h.shown.Until(l.Addrs, l.At)}
		}
	}
	return all
}

// orders returns the orders for the operators, without the changes to make.
func (h *harness) orders() []nemesis.Orders {
	p := &h.plan
	return lo.Times(nemesis.Operators, func(i int) nemesis.Orders {
		row := p.Clients + p.Rivals + i
		return nemesis.Orders{Terms: client.Terms{
			Addrs: h.addrs(lo.Range(p.Nodes)), Ways: h.wires.Ways(row, h.nodes), Prefix: fmt.Sprintf("o%d", i),
			Seed: p.Seed, TTL: p.TTL, Guard: p.Guard, Control: p.Control,
		}}
	})
}

// bootstrap makes the nodes record their set, and declares them brand-new, so
// that they vote at once.
func (h *harness) bootstrap(ctx context.Context) error {
	clients := lo.Map(h.nodes[:h.plan.Nodes], func(n *fleet.Node, _ int) redis.UniversalClient {
		return redis.NewClient(&redis.Options{Addr: n.Server.Addr()})
	})
	defer func() {
		for _, c := range clients {
			_ = c.Close()
		}
	}()
	q, err := quorate.New(clients, e2e.Guarded(h.plan.TTL, h.plan.Guard), quorate.WithSkew(nemesis.Skew),
		quorate.WithRetention(h.plan.Guard), quorate.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return errors.Join(q.Bootstrap(ctx), q.Close())
}

func (h *harness) version(ctx context.Context) string {
	info, err := h.nodes[0].Admin.InfoMap(ctx, "server").Result()
	if err != nil {
		return err.Error()
	}
	return info["Server"]["redis_version"]
}

// phases runs the phases: faults; all faults have ended; every client locks
// everything; everything ends.
func (h *harness) phases(ctx context.Context) error {
	p := &h.plan
	stop := h.progress(ctx)
	defer stop()
	bad, cancel := context.WithTimeout(ctx, p.For)
	if p.Control != client.ControlRedsync {
		repairs, end := fleet.WatchRepairs(h.nodes, p.Guard, h.roster, &h.shown, h.nemesis.LostSince)
		defer func() {
			end()
			h.left, h.repairs = append(h.left, repairs.Found...), repairs.N
		}()
	}
	err := h.nemesis.Run(bad)
	cancel()
	if err == nil && ctx.Err() == nil && h.roster.Unsettled() {
		if serr := h.nemesis.Settle(ctx, nil); serr != nil {
			h.left = append(h.left, judge.Violation{What: serr.Error(), Live: true})
		}
	}
	h.left = append(h.left, h.nemesis.Found()...)
	if err = errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	h.times.FaultsOver = record.Now()
	pulse, end := fleet.WatchPulse(h.nemesis.Voters())
	h.pulse = pulse
	defer func() { end(); h.times.Ended = record.Now() }()
	for _, c := range h.clients {
		h.blame(c, errors.Join(c.KeepUp(), c.BeCalm()))
	}
	// Wait for what the faults may have left: a node within its guard time, a
	// lease of a dead client, a long hold.
	record.Wait(ctx, p.Guard+2*p.TTL)
	h.times.Well = record.Now()
	if record.Wait(ctx, p.Calm); ctx.Err() != nil {
		return ctx.Err()
	}
	errs := make([]error, len(h.clients))
	var all sync.WaitGroup
	for i, c := range h.clients {
		all.Go(func() { errs[i] = c.Finish(5 * client.Patience) })
	}
	all.Wait()
	for i, c := range h.clients {
		h.blame(c, errs[i])
		if n := c.Crashes.Load(); n > 0 {
			h.blame(c, fmt.Errorf("has ended by itself %d times", n))
		}
	}
	h.clean(ctx)
	return ctx.Err()
}

// blame records an error of a client as a violation.
func (h *harness) blame(c *client.Client, err error) {
	if err != nil {
		h.left = append(h.left, judge.Violation{What: fmt.Sprintf("client %d: %v", c.ID, err)})
	}
}

// clean checks what the clients have left on the servers. It waits up to a
// claim's lease, in case the last release to a node was lost.
func (h *harness) clean(ctx context.Context) {
	for _, n := range lo.Filter(h.nodes, func(n *fleet.Node, _ int) bool { return n.Server.Running() }) {
		var left []string
		var err error
		for end := time.Now().Add(2 * h.plan.TTL); ; record.Wait(ctx, 50*time.Millisecond) {
			left, err = n.Leftovers(ctx, h.roster.Has(n.ID))
			if err == nil && len(left) == 0 || time.Now().After(end) || ctx.Err() != nil {
				break
			}
		}
		if err != nil {
			left = append(left, err.Error())
		}
		for _, l := range left {
			h.left = append(h.left, judge.Violation{What: fmt.Sprintf("left on node %d: %s", n.ID, l),
				Key: strings.HasPrefix(l, "key "), Live: true})
		}
	}
}

// close ends everything that was started, however far the run came.
func (h *harness) close() (stats record.ResourceStats, err error) {
	for _, c := range h.clients {
		err = errors.Join(err, c.Kill())
	}
	if h.resource != nil {
		stats = h.resource.Close()
	}
	h.wires.Close()
	return stats, errors.Join(err, fleet.Close(h.nodes))
}

// progress reports every few seconds how far the run has come.
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
				d, f := c.Counts()
				held, refused = held+d, refused+f
			}
			faults := h.nemesis.Faults()
			last := "none yet"
			if len(faults) > 0 {
				last = faults[len(faults)-1].String()
			}
			fmt.Fprintf(h.out, "%5.0fs  %d holds, %d refusals, %d faults (%d now); %s\n",
				time.Since(h.began).Seconds(), held, refused, len(faults), h.nemesis.UnderWay(), last)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
