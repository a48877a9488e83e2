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

// RepairCheck watches nodes that have lost their data: one that says that it is
// caught up has what the others had when its incarnation began. It looks at the
// servers themselves, for what clients find may be right by luck.
type RepairCheck struct {
	guard   time.Duration
	roster  *Roster
	shown   *Shown
	markers []func() (Marker, error)              // of each node
	records []func() (map[string]struct{}, error) // the names of what it is to remember for good

	lacks []lack  // of each node, whose own goroutine alone looks at it
	known []int64 // the incarnation of each node, likewise
	since []int64 // when that was first seen, likewise
	asked []int64 // when it was asked what it has answered last, likewise

	lost func(node int, since int64) bool // whether a node has lost its data since then

	mu    sync.Mutex
	N     int // times that a node was repaired
	Found []judge.Violation
}

// lack is what a node must get before it is caught up.
type lack struct {
	incarnation int64
	names       []string
	changes     int // of the members, when it began
}

// WatchRepairs begins to watch; stop ends it.
func WatchRepairs(nodes []*Node, guard time.Duration, members *Roster, sets *Shown, lost func(int, int64) bool) (w *RepairCheck, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	w = &RepairCheck{guard: guard, roster: members, shown: sets, lost: lost}
	w.track(len(nodes))
	var all sync.WaitGroup
	for _, n := range nodes {
		// A connection of its own: the other one is the nemesis's.
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

// track makes room for so many nodes.
func (w *RepairCheck) track(nodes int) {
	w.lacks, w.known, w.since, w.asked = make([]lack, nodes), make([]int64, nodes), make([]int64, nodes), make([]int64, nodes)
}

// look sees what has become of a node.
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
			// Not known yet; or its repair may be about to end, and what is new
			// since need not be there.
			return
		}
		w.lacks[node] = lack{m.Incarnation, names, changes}
	case m.whole && m.Incarnation == known.incarnation:
		w.judge(node, known)
	}
}

// suspect finds a node that has begun a new incarnation, and so is within its
// guard time, though it has lost nothing: some client has taken its own sleep,
// or a late answer, for a jump of the node's clock. A loss may be noticed more
// than once, and late: on a machine that is busy with other things no client
// may have reached the node since.
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
	w.Found = append(w.Found, judge.Violation{At: record.Now(), What: fmt.Sprintf("node %d is within its guard time, though it has lost nothing for %v", node, 3*w.guard)})
}

// others are what so many other nodes of the set have that a majority may have
// had it. It is the old set, while nodes are being exchanged.
func (w *RepairCheck) others(node int, set []int) ([]string, error) {
	have, need := map[string]int{}, len(set)/2+1
	if slices.Contains(set, node) {
		need-- // it may have had it
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

// judge looks whether a node that says so is caught up.
func (w *RepairCheck) judge(node int, l lack) {
	has, err := w.records[node]()
	if err != nil {
		return // it can be looked at again
	}
	if m, err := w.markers[node](); err != nil || m.Incarnation != l.incarnation {
		return // it has forgotten since
	}
	if _, changes := w.roster.Now(); changes != l.changes {
		w.lacks[node] = lack{}
		return // others have the records now
	}
	lacking := slices.DeleteFunc(slices.Clone(l.names), func(name string) bool { _, ok := has[name]; return ok })
	w.lacks[node] = lack{}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.N++
	if len(lacking) > 0 {
		w.Found = append(w.Found, judge.Violation{At: record.Now(), What: fmt.Sprintf(
			"node %d says that it is caught up, and lacks %d of %d records: %s", node, len(lacking), len(l.names), strings.Join(lacking[:min(len(lacking), 5)], " "))})
	}
}

// records are the names of what the node remembers permanently: what has been
// done once. (The leader's record is dropped some time after it has been
// erased.)
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
