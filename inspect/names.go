package inspect

// This file owns the listing of names.

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
)

// An Entry is one name that is in use. It is a plain value, safe for concurrent
// use as long as no goroutine changes it.
type Entry struct {
	Name    string
	Kind    Kind
	Holder  *Claim  // the first in the queue of those that hold it; nil: none does
	Holders int     // claims that hold it: more than one of a semaphore or of readers
	Waiters int     // claims that wait
	Record  *Record // nil: nothing is recorded
}

// portion is how many keys a node looks at for one SCAN: some tenths of a
// millisecond. atOnce is how many names are asked for at the same time.
const (
	portion = "500"
	atOnce  = 32
)

// Names lists the names that are held, waited for, or recorded, in no order. A
// name that only has a last ticket is left out, and so is the redlock key of
// another Redlock client. pattern is one of Redis, such as "job:*"; "" lists
// all.
//
// The nodes are listed in portions, by SCAN, and each name is asked for by
// itself. So no node is blocked, however many names there are, and a name that
// comes or goes meanwhile may be missing. The keys that a node has altogether
// are looked at, also those of other programs.
//
// A name whose nodes cannot say is an [Entry] with its name alone. When fewer
// than a majority of the nodes could be listed the last element is an error,
// [quorate.ErrNoQuorum] or [quorate.ErrClosed]; when ctx ends it is the error
// of ctx. A range that is left leaves nothing behind.
func Names(ctx context.Context, q *quorate.Quorum, pattern string) iter.Seq2[Entry, error] {
	if pattern == "" {
		pattern = "*"
	}
	return func(yield func(Entry, error) bool) {
		c := core.CoreOf(q)
		parts, err := c.Parts()
		if err != nil {
			yield(Entry{}, core.WrapError("list", "", err))
			return
		}
		l := lister{c: c, pattern: pattern, yield: yield, asked: map[string]bool{}, named: map[string]bool{}}
		for _, part := range parts {
			if over, err := l.list(ctx, part); err != nil || over {
				if err != nil {
					yield(Entry{}, core.WrapError("list", "", err))
				}
				return
			}
		}
	}
}

// lister is one listing.
type lister struct {
	c       *core.Quorum
	pattern string
	yield   func(Entry, error) bool
	asked   map[string]bool // servers that have been listed, for another bucket
	named   map[string]bool
	failed  sync.Map // error by the address of a node: it is not asked any more
}

// failure returns why a node is not asked any more, nil if it is. Without that
// the listing would wait for a node that hangs at each name.
func (l *lister) failure(s *core.Said) error {
	if err, ok := l.failed.Load(s.Addr); ok {
		return err.(error)
	}
	return nil
}

// list lists the servers of one part, a portion of each at a time.
func (l *lister) list(ctx context.Context, part *core.Quorum) (over bool, err error) {
	cursors, here := map[int]string{}, map[string]bool{}
	for first := true; ; first = false {
		if err := ctx.Err(); err != nil {
			return false, core.CutShort(core.ErrNoQuorum, ctx)
		}
		said, sets, err := part.Ask(ctx, func(dst []byte, s *core.Said, keys func(string) script.Keys) []byte {
			cursor := cursors[s.Index]
			if first {
				cursor = "0"
			}
			if l.failure(s) != nil {
				return nil
			}
			// A server of a Redis Cluster has many buckets, and is listed once.
			if cursor == "" || l.asked[s.Server] && !here[s.Server] {
				return nil
			}
			return resp.AppendCommand(dst, "SCAN", cursor, "MATCH", script.Pattern(keys("x"), l.pattern), "COUNT", portion)
		})
		if err != nil {
			return false, err
		}
		var names []string
		more := false
		for _, s := range said {
			if s.Err != nil {
				l.failed.Store(s.Addr, s.Err)
			}
			if s.Err != nil || len(s.Values) == 0 {
				cursors[s.Index] = ""
				continue
			}
			l.asked[s.Server], here[s.Server] = true, true
			if cursors[s.Index] = string(s.Values[0].Str); cursors[s.Index] == "0" {
				cursors[s.Index] = ""
			}
			more = more || cursors[s.Index] != ""
			for _, v := range s.Values[1:] {
				if name, ok := core.NameOf(string(v.Str)); ok && !l.named[name] {
					l.named[name] = true
					names = append(names, name)
				}
			}
		}
		if !l.tell(ctx, names) {
			return true, nil
		}
		if more {
			continue
		}
		f := &core.Failure{Err: core.ErrNoQuorum, Needed: sets.Need()}
		bad := uint32(0)
		for _, s := range said {
			if err := l.failure(&s); err != nil {
				f.Nodes = append(f.Nodes, core.NodeFailure{Addr: s.Addr, Err: err})
				bad |= 1 << s.Index
			}
		}
		// What a majority has is at one of the others, unless these leave no
		// majority.
		if sets.Blocked(bad) {
			return false, f
		}
		return false, nil
	}
}

// tell asks for the names and yields those that are in use. It reports whether
// more is wanted.
func (l *lister) tell(ctx context.Context, names []string) bool {
	entries := make([]*Entry, len(names))
	room := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i, name := range names {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			entries[i] = l.entry(ctx, name)
		})
	}
	all.Wait()
	for _, e := range entries {
		if e != nil && !l.yield(*e, nil) {
			return false
		}
	}
	return true
}

// entry returns what is to be listed of a name, nil if it is not in use.
func (l *lister) entry(ctx context.Context, name string) *Entry {
	v, err := look(ctx, l.c.For(name), name, 1, l.failure)
	for _, n := range v.nodes {
		if n.Err != nil && !core.Refused(n.Err) { // it may refuse one name, as that of another program's key
			l.failed.LoadOrStore(n.Addr, n.Err)
		}
	}
	if err != nil || v.missing() != nil {
		return &Entry{Name: name}
	}
	r, e := v.report(name), &Entry{Name: name}
	e.Kind, e.Record = r.Kind, r.Record
	queued := 0
	for _, n := range v.nodes {
		e.Holders, queued = max(e.Holders, n.queue.Voted), max(queued, n.queue.Queued)
	}
	if len(r.Holders) > 0 {
		e.Holder = &r.Holders[0]
	} else {
		e.Holders = 0
	}
	e.Waiters = queued - e.Holders
	if r.Record != nil && !r.Record.Until.IsZero() && time.Now().After(r.Record.Until) {
		e.Record = nil
	}
	if queued == 0 && e.Record == nil {
		return nil
	}
	return e
}
