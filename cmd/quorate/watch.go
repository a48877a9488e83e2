package main

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/cmd/quorate/internal/board"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/inspect"
)

// Bounds of one round of a watcher.
const (
	mostListed   = 1000                // names that are listed; the listing goes on in the next round
	mostFollowed = board.MostNames / 2 // names that are looked at closely: these, and those of the listing before
	looksAtOnce  = 16
)

// A watcher observes the nodes and the names, round after round.
type watcher struct {
	q       *quorate.Quorum
	pattern string

	next    func() (inspect.Entry, error, bool) // of the listing that is under way; nil: none is
	stop    func()
	listed  int             // names of it
	found   []inspect.Entry // those of it that are most in demand
	before  []inspect.Entry // those of the listing before
	total   int             // names of that
	counted bool            // one has ended
}

// watch observes until ctx ends, with a pause of every between two rounds.
func watch(ctx context.Context, q *quorate.Quorum, pattern string, every time.Duration, tell func(board.Observation)) {
	w := &watcher{q: q, pattern: pattern}
	defer w.end()
	for ctx.Err() == nil {
		o := w.round(ctx)
		if ctx.Err() != nil {
			return
		}
		tell(o)
		select {
		case <-time.After(every):
		case <-ctx.Done():
		}
	}
}

// end ends the listing that is under way.
func (w *watcher) end() {
	if w.stop != nil {
		w.stop()
	}
	w.next, w.stop = nil, nil
}

func (w *watcher) round(ctx context.Context) board.Observation {
	var o board.Observation
	var all sync.WaitGroup
	all.Go(func() {
		asked, cancel := context.WithTimeout(ctx, cli.Patience)
		defer cancel()
		r, _ := w.q.Check(asked) // the report says what is wrong
		o.Nodes, o.Quorum, o.Ready = boardNodes(r), r.Quorum, r.Ready
	})
	began := w.next == nil
	ended, err := w.list(ctx)
	if err != nil {
		o.Trouble = cli.InFlags(cli.Plain(err).Error())
	}
	o.Whole = began && ended && err == nil && w.total <= mostFollowed
	o.Names = w.look(ctx)
	if ended {
		w.before = w.found
	}
	all.Wait()
	o.At, o.Total, o.Counted = time.Now(), max(w.total, w.listed), w.counted
	return o
}

// list goes on with the listing. It reports whether that has come to its end.
func (w *watcher) list(ctx context.Context) (ended bool, err error) {
	if w.next == nil {
		w.next, w.stop = iter.Pull2(inspect.Names(ctx, w.q, w.pattern))
		w.listed, w.found = 0, nil
	}
	for range mostListed {
		e, err, ok := w.next()
		if err != nil {
			w.end()
			return false, err
		}
		if !ok {
			w.end()
			w.found = foremost(w.found)
			w.total, w.counted = w.listed, true
			return true, nil
		}
		w.listed++
		if w.found = append(w.found, e); len(w.found) >= 2*mostFollowed {
			w.found = foremost(w.found)
		}
	}
	return false, nil
}

// foremost returns the names that are most in demand.
func foremost(all []inspect.Entry) []inspect.Entry {
	slices.SortFunc(all, func(a, b inspect.Entry) int {
		return cmp.Or(b.Waiters-a.Waiters, b.Holders-a.Holders, cmp.Compare(a.Name, b.Name))
	})
	return all[:min(len(all), mostFollowed)]
}

// look looks closely at the names that are most in demand, and at those that
// were before.
func (w *watcher) look(ctx context.Context) []board.Look {
	names := map[string]bool{}
	for _, e := range slices.Concat(foremost(w.found), w.before) {
		names[e.Name] = true
	}
	ctx, cancel := context.WithTimeout(ctx, cli.Patience)
	defer cancel()
	looks := make([]board.Look, 0, len(names))
	var mu sync.Mutex
	var all sync.WaitGroup
	room := make(chan struct{}, looksAtOnce)
	for name := range names {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			r, err := inspect.Name(ctx, w.q, name)
			r.Name = name
			for i := range r.Nodes {
				if e := r.Nodes[i].Err; e != nil {
					r.Nodes[i].Err = errors.New(cause(e))
				}
			}
			mu.Lock()
			defer mu.Unlock()
			looks = append(looks, board.Look{At: time.Now(), Report: r, Unsure: err != nil})
		})
	}
	all.Wait()
	return looks
}

// boardNodes tells of the nodes in the words of check.
func boardNodes(r quorate.Report) []board.Node {
	nodes := make([]board.Node, len(r.Nodes))
	for i := range r.Nodes {
		n := &r.Nodes[i]
		nodes[i] = board.Node{Name: n.Node, State: state(n), Up: n.Err == nil, Recovering: n.Recovering.Seconds()}
		if err := cmp.Or(n.Err, n.Refuses); err != nil {
			nodes[i].Cause = cause(err)
		}
	}
	return nodes
}
