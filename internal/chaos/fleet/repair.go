package fleet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/chaos/judge"
	"github.com/quorate/quorate/internal/chaos/record"
)

// RepairCheck watches nodes that have lost their data. A node that claims to be
// caught up must have everything that the others had when its incarnation
// began. The check reads the servers directly, because clients may get the
// right answer by luck.
type RepairCheck struct {
	guard   time.Duration
	roster  *Roster
	shown   *Shown
	markers []func() (Marker, error) // of each node
	// The names of the records that the node must keep permanently.
	records []func() (map[string]struct{}, error)

	lacks []lack  // per node; only the node's own goroutine uses it
	known []int64 // per node, likewise: its incarnation
	since []int64 // per node, likewise: when that incarnation was first seen
	asked []int64 // per node, likewise: when the question that it answered last was asked

	lost func(node int, since int64) bool // whether a node has lost its data since then

	mu    sync.Mutex
	N     int // how often a node was repaired
	Found []judge.Violation
}

// lack is what a node must get before it is caught up.
type lack struct {
	incarnation int64
	names       []string
	changes     int // how often the set had changed when the incarnation began
}

// WatchRepairs begins to watch; stop ends it.
func WatchRepairs(
	nodes []*Node, guard time.Duration, members *Roster, sets *Shown, lost func(int, int64) bool,
) (w *RepairCheck, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	w = &RepairCheck{guard: guard, roster: members, shown: sets, lost: lost}
	w.track(len(nodes))
	var all sync.WaitGroup
	for _, n := range nodes {
		// Use a separate connection, because the other one belongs to the
		// nemesis.
		own := &Node{Server: n.Server, Admin: connectAdmin(n.Server.Addr())}
		w.markers = append(w.markers, own.Marker)
		w.records = append(w.records, own.records)
		context.AfterFunc(ctx, func() { _ = own.Admin.Close() })
	}
	for i := range nodes {
		all.Go(func() {
			for record.Wait(ctx, 20*time.Millisecond); ctx.Err() == nil; record.Wait(ctx, 20*time.Millisecond) {
				w.look(i)
			}
		})
	}
	return w, func() {
		cancel()
		all.Wait()
	}
}

// track makes room for the given number of nodes.
func (w *RepairCheck) track(nodes int) {
	w.lacks, w.known, w.since, w.asked = make([]lack, nodes), make([]int64, nodes), make([]int64, nodes),
		make([]int64, nodes)
}

// look checks the state of a node.
func (w *RepairCheck) look(node int) {
	sent := record.Now()
	m, err := w.markers[node]()
	if err != nil {
		return
	}
	w.shown.note(m.set, w.asked[node])
	w.asked[node] = sent
	if m.Incarnation == 0 {
		return
	}
	w.suspect(node, m.Incarnation)
	switch known := w.lacks[node]; {
	case !m.whole && m.Incarnation != known.incarnation:
		set, changes := w.roster.Now()
		names, err := w.others(node, set)
		if err != nil || time.Since(m.born) > w.guard {
			// The incarnation is not known yet, or its repair may be about to
			// end and need not include newer records.
			return
		}
		w.lacks[node] = lack{m.Incarnation, names, changes}
	case m.whole && m.Incarnation == known.incarnation:
		w.judge(node, known)
	}
}

// suspect reports a node that has begun a new incarnation, and so a guard time,
// although it has lost nothing: some client has mistaken its own sleep, or a
// late answer, for a jump of the node's clock. A real loss may be noticed more
// than once, and late, because on a busy machine no client may have reached the
// node since.
func (w *RepairCheck) suspect(node int, incarnation int64) {
	before, since := w.known[node], w.since[node]
	if before != incarnation {
		w.known[node], w.since[node] = incarnation, record.Now()
	}
	if before == 0 || before == incarnation || w.lost(node, min(since, record.Now()-int64(3*w.guard))) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Found = append(w.Found, judge.Violation{At: record.Now(),
		What: fmt.Sprintf("node %d is within its guard time, though it has lost nothing for %v", node, 3*w.guard)})
}

// others returns the records that a majority may have had, judging by how many
// other nodes of the set have them. While nodes are exchanged, the set is the
// old one.
func (w *RepairCheck) others(node int, set []int) ([]string, error) {
	have, need := map[string]int{}, len(set)/2+1
	if slices.Contains(set, node) {
		need-- // the node itself may have had it
	}
	for _, i := range set {
		if i == node {
			continue
		}
		all, err := w.records[i]()
		if err != nil {
			return nil, err
		}
		for name := range all {
			have[name]++
		}
	}
	maps.DeleteFunc(have, func(_ string, nodes int) bool { return nodes < need })
	return slices.Sorted(maps.Keys(have)), nil
}

// judge checks whether a node that claims to be caught up is.
func (w *RepairCheck) judge(node int, l lack) {
	has, err := w.records[node]()
	if err != nil {
		return // the next look tries again
	}
	if m, err := w.markers[node](); err != nil || m.Incarnation != l.incarnation {
		return // it has lost its data again
	}
	if _, changes := w.roster.Now(); changes != l.changes {
		w.lacks[node] = lack{}
		return // the set has changed, so other nodes have the records now
	}
	lacking := slices.DeleteFunc(slices.Clone(l.names), func(name string) bool {
		_,
			ok := has[name]
		return ok
	})
	w.lacks[node] = lack{}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.N++
	if len(lacking) > 0 {
		w.Found = append(w.Found, judge.Violation{At: record.Now(), What: fmt.Sprintf(
			"node %d says that it is caught up, and lacks %d of %d records: %s", node, len(lacking), len(l.names),
			strings.Join(lacking[:min(len(lacking), 5)], " "))})
	}
}

// records returns the names of the node's permanent records, which are those of
// once. (A leader's record is dropped some time after it was erased.)
func (n *Node) records() (map[string]struct{}, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	names := map[string]struct{}{}
	keys, err := n.Admin.Keys(ctx, "quorate:{once-*:r").Result()
	if err != nil || len(keys) == 0 {
		return names, err
	}
	texts, err := n.Admin.MGet(ctx, keys...).Result()
	for i, text := range texts {
		// "<of the promise: three words> <ticket> <id> <seq> <erased> <end, 0
		// for never> <value>"
		s, _ := text.(string)
		if f := strings.SplitN(s, " ", 9); len(f) == 9 && f[3] != "0" && f[7] == "0" {
			names[keys[i]] = struct{}{}
		}
	}
	return names, err
}
