// Package members says which nodes a set has, and changes that while locks
// are held and waited for.
//
//	err := members.Replace(ctx, q, "lock-c:6379", "redis://lock-d:6379")
//
// A set has members, each with a number, an identity and an address, and the
// settings that all clients share. The nodes keep them.
// [quorate.Quorum.Bootstrap] has brand-new nodes record their set.
// docs/operate/membership.md is for operators.
//
// # What all changes have in common
//
// A change returns when a majority of the new set serves it, and connected
// clients have followed. Then a server that has left may be stopped, and the
// next change may begin. Not before: a client follows by the word of a majority
// of the members that it knows. A change that takes an address away waits half
// a guard time for that. Holders keep their holds, waiters their places, and
// tokens rise. Give each client the new list afterwards: a client that starts
// finds the set by a majority of its list. One that is cut off from the nodes
// while a change ends may need the new list, too.
//
// One change is under way at a time. A call that finds another one finishes
// that first, also one that a process has left half-way. When ctx ends, or a
// new node has not answered for a guard time, the change is given up: the set
// is as before, as the error says. If it cannot be given up any more, or the
// process dies, the set is left half-way. That is safe for as long as it lasts,
// and locks work. The next call goes on with it, and [Undo] gives it up.
//
// Each fails with [quorate.ErrInvalid], and changes nothing, when the change
// makes no sense or a new server cannot be a member; with [quorate.ErrNoQuorum]
// when too few nodes answer; with the error of ctx; and with
// [quorate.ErrClosed]. A Quorum of Redis Clusters cannot be changed:
// ErrInvalid. All are safe for concurrent use, by several processes as well.
package members

import (
	"context"
	"slices"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/operator"
)

// A Member is one node of a set. It is a plain value, safe for concurrent use
// as long as no goroutine changes it.
type Member struct {
	Number   int      // by which requests and votes know it; a member that enters gets a new one
	Identity string   // which goes with the node's data
	Addr     string   // what clients dial
	Role     Role     // other than Stays only while the set is being changed
	Also     []string // further addresses of the server: see [AddAddr]
}

// Role is what becomes of a member. It is a plain value, safe for concurrent
// use.
type Role string

// The roles.
const (
	// Stays ("stays"): it is a member before and after the change.
	Stays Role = "stays"
	// Enters ("enters"): it is being added.
	Enters Role = "enters"
	// Leaves ("leaves"): it is being removed.
	Leaves Role = "leaves"
)

// Settings are what all clients of a set share. A zero field of [Set]'s
// argument is left as it is, but for a retention that is shorter than the new
// guard time, which becomes as long. They have the bounds that [quorate.New]
// has. They are a plain value, safe for concurrent use as long as no goroutine
// changes it.
type Settings struct {
	Guard     time.Duration // how long a node that lost its data does not vote: see [quorate.WithGuard]
	Retention time.Duration // how long a name's last ticket is kept: see [quorate.WithRetention]
	Skew      time.Duration // the largest tolerated difference between node clocks: see [quorate.WithSkew]
}

// A List is a set as this process counts on it. It is a plain value, safe for
// concurrent use as long as no goroutine changes it.
type List struct {
	Epoch    uint64        // counts the configurations of the set, from 1 on
	Stage    quorate.Stage // other than [quorate.StageStable] while the set is being changed
	Members  []Member
	Settings Settings
}

// Get returns the set that q counts on. It waits until that is known, also
// while the nodes do not answer or are brand-new. It fails with
// [quorate.ErrNoQuorum] and the error of ctx when ctx ends before, with
// ErrNoQuorum alone when so many nodes refuse that waiting cannot help, with
// [quorate.ErrInvalid] when the list of q is that of no set, and with
// [quorate.ErrClosed].
func Get(ctx context.Context, q *quorate.Quorum) (List, error) {
	c, err := core.CoreOf(q).Onlooker().Configuration(ctx)
	if err != nil {
		return List{}, core.WrapError("members", "", err)
	}
	l := List{Epoch: c.Stamp.Epoch(), Stage: quorate.Stage(c.Stage.String()), Settings: Settings{c.Guard(), c.Retention(), c.Skew()}}
	for _, m := range c.Members {
		l.Members = append(l.Members, Member{m.Number, m.Identity, m.Addr, Role(m.Role.String()), slices.Clone(m.Also)})
	}
	return l, nil
}

// Add adds nodes to the set. Each url is one that [quorate.Connect] takes, of a
// server or a Sentinel set that is empty or has left this set. It takes two
// guard times: in the first one the new nodes take in what the others have, in
// the second one a lock needs a majority of both sets.
func Add(ctx context.Context, q *quorate.Quorum, urls ...string) error {
	return change(ctx, q, "add members", operator.Exchange{Add: urls})
}

// Remove removes nodes from the set. Each is given by its address, or by a URL
// of that. A node that is down for good is removed like any other one. It takes
// about a guard time and a half. The servers may be stopped when it returns
// nil, and not before.
//
// While several processes contend for a name, its holder may have a majority
// only with the nodes that leave. Then its hold is lost within its ttl, and its
// context says so.
func Remove(ctx context.Context, q *quorate.Quorum, addrs ...string) error {
	return change(ctx, q, "remove members", operator.Exchange{Remove: addrs})
}

// Replace replaces one node of the set by another one. old is as for [Remove],
// and may be down for good. url is as for [Add]. It takes about two guard times
// and a half.
//
// A server that was emptied or got a new disk and keeps its address needs no
// call: it takes its place by itself.
func Replace(ctx context.Context, q *quorate.Quorum, old, url string) error {
	return change(ctx, q, "replace member", operator.Exchange{Add: []string{url}, Remove: []string{old}})
}

// Move gives a member another address. Its server has the same data, and
// answers at the new address. It takes about half a guard time. If the member
// had several addresses, it has the new one alone then: to may be one of these.
func Move(ctx context.Context, q *quorate.Quorum, from, to string) error {
	return change(ctx, q, "move member", operator.Exchange{Move: &operator.Move{From: from, To: to}})
}

// AddAddr gives a member one more address. Both must lead to the same server at
// all times: a plain port and one with TLS, a host name and an IP, or the
// addresses of two networks. A client dials the address of a member that its
// own list names, as that entry of its list says, and else the first one. So
// clients can change over one at a time. addr is any address of the member, and
// another one a URL that [quorate.Connect] takes.
//
// It takes moments, and waits for no client. It fails with [quorate.ErrInvalid]
// when the member does not answer, when another server answers at the new
// address, and when the member has four addresses. [Move] drops all but one.
func AddAddr(ctx context.Context, q *quorate.Quorum, addr, another string) error {
	return change(ctx, q, "add address", operator.Exchange{Move: &operator.Move{From: addr, To: another, Keep: true}})
}

// Set changes the settings of the set. It takes about the longer one of the
// guard times of before and after. A guard time that no longer covers the ttl
// of a client ends its holds: the client is refused, with [quorate.ErrInvalid]
// and both numbers.
func Set(ctx context.Context, q *quorate.Quorum, s Settings) error {
	return change(ctx, q, "set members", operator.Exchange{Shared: &nodeset.Shared{Guard: s.Guard, Retention: s.Retention, Skew: s.Skew}})
}

// Undo gives up a change that a process has left half-way, or that another one
// waits for: the set is as before when it returns nil, also where there was
// nothing to undo. It does not wait for nodes that were to be added. It takes
// moments. A call that was interrupted may be repeated.
func Undo(ctx context.Context, q *quorate.Quorum) error {
	return change(ctx, q, "undo", operator.Exchange{Undo: true})
}

func change(ctx context.Context, q *quorate.Quorum, op string, x operator.Exchange) error {
	return core.WrapError(op, "", operator.Run(ctx, core.CoreOf(q), x))
}
