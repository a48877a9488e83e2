package inspect

// Listing the names.

import (
	"context"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/setup"
)

// An Entry is one name that is in use.
type Entry struct {
	Name    string
	Kind    Kind
	Holder  *Claim  // the first holder in queue order; nil if no claim holds the name
	Holders int     // number of claims that hold it; more than one only for semaphores and readers
	Waiters int     // number of claims that are waiting
	Record  *Record // nil if nothing is recorded
}

// portion is how many keys a node looks at for one SCAN: 0.15 ms where all are
// ours, as each is sent. atOnce is how many names are asked for at the same
// time. patience is for how long a node may leave all questions without an
// answer, and pause is the time before a portion is asked for once more.
const (
	portion  = "100"
	atOnce   = 32
	patience = 2 * time.Second
	pause    = 20 * time.Millisecond
)

// Names lists the names that are held, waited for or recorded, in no particular
// order. It skips names that have nothing but a last ticket, the keys of other
// Redlock clients, and the library's own names, which begin with "quorate set
// ". pattern is a Redis pattern such as "job:*"; "" lists all names.
//
// Names lists the nodes in batches, using SCAN, and asks for each name
// separately. So it never blocks a node, however many names there are, but it
// can miss a name that appears or disappears in the meantime. SCAN visits all
// keys on a node, including those of other programs. Names gives up on a node
// that has not answered for two seconds, and on a node whose listing loops,
// never ends, or takes two seconds longer than the listings of a majority.
//
// If the nodes cannot report on a name, its [Entry] contains only the name. If
// fewer than a majority of the nodes could be listed, the last element is an
// error, [quorate.ErrNoQuorum] or [quorate.ErrClosed]. If ctx is done, the last
// element is ctx's error. You may break out of the loop at any time.
func Names(ctx context.Context, q *quorate.Quorum, pattern string) iter.Seq2[Entry, error] {
	if pattern == "" {
		pattern = "*"
	}
	return func(yield func(Entry, error) bool) {
		c := core.CoreOf(q)
		parts, err := c.Onlooker().Parts()
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
	silent  sync.Map // silence by the address of a node: it has not answered since
}

// silence is since when a node has not answered, and why.
type silence struct {
	since time.Time
	err   error
}

// failure returns why a node is no longer asked, or nil if it still is. Without
// this check the listing would wait for a hung node at every name.
func (l *lister) failure(s *core.NodeAnswer) error {
	if v, ok := l.silent.Load(s.Addr); ok && time.Since(v.(silence).since) > patience {
		return v.(silence).err
	}
	return nil
}

// heard notes whether a node has answered.
func (l *lister) heard(addr string, err error) {
	if err == nil {
		l.silent.Delete(addr)
	} else {
		l.silent.LoadOrStore(addr, silence{time.Now(), err})
	}
}

// list lists the servers of one part, a portion of each at a time. Once the
// nodes that have ended suffice, it waits for the others for patience at most.
func (l *lister) list(ctx context.Context, part core.Onlooker) (over bool, err error) {
	p := listing{lister: l, scans: map[int]*scan{}, here: map[string]bool{}, unlisted: map[int]error{}}
	for {
		if err := ctx.Err(); err != nil {
			return false, fault.CutShort(fault.ErrNoQuorum, ctx)
		}
		said, sets, err := part.Ask(ctx, func(dst []byte, s *core.NodeAnswer,
			keys func(string) script.Keys) []byte {
			if !p.pending(s) || l.failure(s) != nil {
				return nil
			}
			return resp.AppendCommand(dst, "SCAN", p.at(s), "MATCH",
				script.Pattern(keys("x"), l.pattern), "COUNT", portion)
		})
		if err != nil {
			return false, err
		}
		var names []string
		more, again := uint32(0), false
		for i := range said {
			s := &said[i]
			found, unheard := p.take(s)
			names, again = append(names, found...), again || unheard
			if p.scans[s.Index].cursor != "" {
				more |= 1 << s.Index
			}
		}
		if !l.tell(ctx, names) {
			return true, nil
		}
		if p.suffices(said, sets, more) {
			more = 0
		}
		if more == 0 {
			return false, l.listed(said, sets, p.unlisted)
		}
		if again {
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	}
}

// listing is the listing of one part.
type listing struct {
	*lister
	scans    map[int]*scan   // of the nodes that have been asked, by index
	here     map[string]bool // servers that are listed in this part
	unlisted map[int]error
	enough   time.Time // since when the nodes that have ended suffice
}

// pending reports whether a node has more to list. A server of a Redis Cluster
// has many buckets, and is listed once.
func (p *listing) pending(s *core.NodeAnswer) bool {
	scan := p.scans[s.Index]
	return (scan == nil || scan.cursor != "") && (!p.asked[s.Server] || p.here[s.Server])
}

// at is the cursor of a node's next portion.
func (p *listing) at(s *core.NodeAnswer) string {
	if scan := p.scans[s.Index]; scan != nil {
		return scan.cursor
	}
	return "0"
}

// take takes what a node has said to a question. It returns the names that are
// new, and whether the node has not answered and is to be asked again.
func (p *listing) take(s *core.NodeAnswer) (names []string, unheard bool) {
	pending, at := p.pending(s), p.at(s)
	of := p.scans[s.Index]
	if of == nil {
		of = &scan{}
		p.scans[s.Index] = of
	}
	if s.Err == nil && len(s.Values) == 0 && pending {
		s.Err = p.failure(s) // it has not been asked
	}
	var err error
	switch {
	case s.Err != nil:
		p.heard(s.Addr, s.Err)
		if fault.Refused(s.Err) || p.failure(s) != nil {
			err = s.Err
		} else if of.cursor = at; !pending {
			of.cursor = ""
		}
	case len(s.Values) > 0:
		p.heard(s.Addr, nil)
		p.asked[s.Server], p.here[s.Server] = true, true
		err = of.advance(string(s.Values[0].Str))
		for _, v := range s.Values[1:] {
			if name, ok := nameOf(string(v.Str)); ok && !p.named[name] && err == nil {
				p.named[name] = true
				names = append(names, name)
				err = of.add(name)
			}
		}
	}
	if err != nil {
		p.unlisted[s.Index], of.cursor = err, ""
	}
	return names, s.Err != nil && of.cursor != ""
}

// suffices reports whether the listing is to end though some nodes have more:
// what a majority has is at one of the others, and those have had their time.
func (p *listing) suffices(said []core.NodeAnswer, sets protocol.Quorums, more uint32) bool {
	bad := more
	for i := range p.unlisted {
		bad |= 1 << i
	}
	switch {
	case more == 0 || sets.Blocked(bad):
		return false
	case p.enough.IsZero():
		p.enough = time.Now()
	}
	if time.Since(p.enough) < patience {
		return false
	}
	for _, s := range said {
		if more&(1<<s.Index) != 0 {
			p.unlisted[s.Index] = errSlowScan
		}
	}
	return true
}

// listed returns nil if the nodes that could be listed make a quorum.
func (l *lister) listed(said []core.NodeAnswer, sets protocol.Quorums, unlisted map[int]error) error {
	f := &fault.Failure{Err: fault.ErrNoQuorum, Needed: sets.Need()}
	bad := uint32(0)
	for _, s := range said {
		if err := unlisted[s.Index]; err != nil {
			f.Nodes = append(f.Nodes, fault.NodeFailure{Addr: s.Addr, Err: err})
			bad |= 1 << s.Index
		}
	}
	// What a majority has is at one of the others, unless these leave no
	// majority.
	if sets.Blocked(bad) {
		f.Votes = len(said) - len(f.Nodes)
		return f
	}
	return nil
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
	v, err := look(ctx, l.c.For(name).Onlooker(), name, 1, l.failure)
	for _, n := range v.nodes {
		if n.Err == nil || !fault.Refused(n.Err) { // it may refuse one name, as that of another program's key
			l.heard(n.Addr, n.Err)
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

// nameOf returns the name that a key is of, if it is the key of a name's claims
// or of its record, and no key of the library's own.
func nameOf(key string) (name string, ok bool) {
	_, name, ours := strings.Cut(key, ":{")
	name, end, whole := strings.Cut(name, "}")
	ok = ours && whole && (end == "" || end == ":r") && setup.CheckName(name) == nil &&
		!protocol.IsSuccessorRegister(name)
	return name, ok
}
