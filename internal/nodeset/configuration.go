package nodeset

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// What a set of nodes is: the configuration that its nodes have recorded, and
// the order of configurations. docs/internals/protocol.md, "Sets of nodes",
// states the rules and proves them.

// Ballot orders the proposals of several clients. No two are equal, and a later
// one is higher. It consists of 11 hexadecimal digits of milliseconds and 8
// random ones, so nodes can compare ballots as strings.
type Ballot string

const ballotLength = 11 + 8

// NewBallot returns a ballot for the given moment that is higher than above.
func NewBallot(at time.Time, chance uint32, above Ballot) Ballot {
	millis := max(0, at.UnixMilli())
	b := func() Ballot { return Ballot(fmt.Sprintf("%011x%08x", millis, chance)) }
	if b() <= above {
		millis = above.millis() + 1
	}
	return b()
}

func (b Ballot) millis() int64 {
	if len(b) != ballotLength {
		return 0
	}
	n, err := strconv.ParseInt(string(b[:11]), 16, 64)
	if err != nil {
		return 0
	}
	return n
}

// Stamp names one configuration: "<epoch>.<ballot>", with the ballot under
// which it was proposed first. The empty Stamp stands for no configuration.
type Stamp string

func StampOf(epoch uint64, b Ballot) Stamp { return Stamp(fmt.Sprintf("%d.%s", epoch, b)) }

func (s Stamp) parts() (epoch uint64, b Ballot, ok bool) {
	e, ballot, _ := strings.Cut(string(s), ".")
	epoch, err := strconv.ParseUint(e, 10, 32)
	return epoch, Ballot(ballot), err == nil && epoch > 0 && len(ballot) == ballotLength &&
		strings.Trim(ballot, "0123456789abcdef") == ""
}

// Epoch returns the number of the configuration within its set, starting at 1;
// 0 for none.
func (s Stamp) Epoch() uint64 {
	epoch, _, _ := s.parts()
	return epoch
}

func (s Stamp) Ballot() Ballot {
	_, b, _ := s.parts()
	return b
}

// Since returns when the configuration was proposed, by the clock of the client
// that proposed it.
func (s Stamp) Since() time.Time {
	_, b, _ := s.parts()
	return time.UnixMilli(b.millis())
}

// Compare orders configurations: by epoch, then by ballot. None is the lowest.
func (s Stamp) Compare(o Stamp) int {
	e, b, _ := s.parts()
	f, c, _ := o.parts()
	return cmp.Or(cmp.Compare(e, f), cmp.Compare(b, c))
}

// Member is one node of a set.
type Member struct {
	Number   int      // of the member in all requests and votes: a bit of a Quorums
	Identity string   // of the node: it goes with the node's data
	Addr     string   // what a dial needs
	Also     []string // further addresses of the same server; not written to once the Configuration is made
	Role     Role     // while the set is being changed
}

// Has reports whether an address is one of the member's.
func (m *Member) Has(addr string) bool { return m.Addr == addr || slices.Contains(m.Also, addr) }

// All returns the member's addresses, the first one first.
func (m *Member) All() []string { return append([]string{m.Addr}, m.Also...) }

// dialedBy returns the address by which a client reaches the member: the one
// that the client's list names, else the first.
//
// Invariant: the address is one of those recorded in the set, and there is only
// one connection to each member. So a member has one vote, however many
// addresses it has: an operator may only add addresses of the server that
// serves the member.
func (m *Member) dialedBy(list []string) string {
	if i := slices.IndexFunc(list, m.Has); i >= 0 { //mutant:RuleSetListed
		return list[i]
	}
	return m.Addr
}

// MaxAddrs is the maximum number of addresses of a member, and MaxAddr the
// maximum length of an address that an operator sets. The record of a set stays
// far smaller than the scripts can read.
const (
	MaxAddrs = 4
	MaxAddr  = 1024
)

// Shared are the settings that all clients of a set share.
type Shared struct {
	Guard     time.Duration // how long a node that lost its data does not vote
	Retention time.Duration // how long a name's fence outlives its last claim
	Skew      time.Duration // the largest tolerated difference between node clocks
}

// Configuration says which nodes make a quorum, and holds what all their
// clients share. It is immutable: another set of nodes is another
// Configuration.
type Configuration struct {
	Stamp   Stamp
	Origin  Stamp // of the set's first configuration
	Now     Shared
	Next    Shared // while the set is being changed: what follows; else as Now
	Stage   Stage
	Last    int // the number that was given last
	Members []Member
}

// Guard returns the guard time in force: while it is being changed, the longer
// one.
func (c *Configuration) Guard() time.Duration { return max(c.Now.Guard, c.Next.Guard) }

// Retention returns the retention in force: the longer one, and no less than
// the guard time.
// Invariant: a node keeps the data of any lease for as long as the lease may
// run. If a lease is longer than the asker's and than the retention, the node
// assumes that it is from before the clock was set back, and shortens it.
func (c *Configuration) Retention() time.Duration {
	return max(c.Now.Retention, c.Next.Retention, c.Guard())
}

// Skew returns the skew in force: the larger one.
func (c *Configuration) Skew() time.Duration { return max(c.Now.Skew, c.Next.Skew) }

// LeaseGuard returns the guard time that leases and tickets must fit: while it
// is being changed, the shorter one.
// A guard time that is longer than what leases and tickets were bound by is always
// safe. A shorter one counts only when the earlier leases have ended.
func (c *Configuration) LeaseGuard() time.Duration { return min(c.Now.Guard, c.Next.Guard) }

// LongestTTL returns the longest lease that the guard time covers.
func (c *Configuration) LongestTTL() time.Duration { return max(0, c.LeaseGuard()/2-c.Skew()) }

// Addrs returns the first address of each member.
func (c *Configuration) Addrs() []string {
	addrs := make([]string, 0, len(c.Members))
	for _, m := range c.Members {
		addrs = append(addrs, m.Addr)
	}
	return addrs
}

// Member returns the index of the member with an identity, or -1 if there is
// none.
func (c *Configuration) Member(identity string) int {
	return slices.IndexFunc(c.Members, func(m Member) bool { return m.Identity == identity })
}

// Place is like Member, but for an address, which may be any of the member's
// addresses.
func (c *Configuration) Place(addr string) int {
	return slices.IndexFunc(c.Members, func(m Member) bool { return m.Has(addr) })
}

// Numbered returns the member with a number, nil if there is none. It is nil
// for no configuration.
func (c *Configuration) Numbered(number int) *Member {
	if c == nil {
		return nil
	}
	for i := range c.Members {
		if m := &c.Members[i]; m.Number == number {
			return m
		}
	}
	return nil
}

// Kin reports whether two configurations belong to the same set, that is, go
// back to the same first one. That one's stamp has a ballot, which is partly
// random, so no other set has it.
func (c *Configuration) Kin(o *Configuration) bool { return c.Origin == o.Origin }

// coveredBy reports whether a list has an address of each member. If so, the
// client may record the set again although fewer than q nodes of its list show
// it (Recorder.due), and its list is not wrong.
func (c *Configuration) coveredBy(list []string) bool {
	return !slices.ContainsFunc(c.Members, func(k Member) bool { return !slices.ContainsFunc(list, k.Has) })
}

// numbers returns the members for which the condition is true, as one bit for
// each number.
func (c *Configuration) numbers(is func(m *Member) bool) (numbers uint32) {
	for i := range c.Members {
		if m := &c.Members[i]; is(m) {
			numbers |= 1 << m.Number
		}
	}
	return numbers
}

// Deciders returns the members whose majority decides which configuration
// follows: those that stay or leave.
func (c *Configuration) Deciders() uint32 {
	return c.numbers(func(m *Member) bool { return m.Role != Enters })
}

// Quorums returns which members make a quorum, by their numbers. Two sets count
// only in Jointly: the set before the exchange and the set after it. A change of
// the settings alone also passes through Jointly. Its two sets are equal, so they
// count as one.
func (c *Configuration) Quorums() protocol.Quorums {
	present, next := c.Deciders(), c.numbers(func(m *Member) bool { return m.Role != Leaves })
	if c.Stage != Jointly || present == next {
		return protocol.Quorums{Present: present}
	}
	return protocol.Quorums{Present: present, Next: next} //mutant:RuleSetBoth=protocol.Quorums{Present: next}
}

// widens reports whether each quorum of a configuration contains a quorum of o,
// the configuration that it directly follows.
func (c *Configuration) widens(o *Configuration) bool {
	if o == nil || c.Stamp.Epoch() != o.Stamp.Epoch()+1 {
		return false
	}
	for _, m := range o.Members { // it is not if an exchange has been finished
		if m.Role != Enters && c.Member(m.Identity) < 0 {
			return false
		}
		if m.Role == Enters && c.Stage == Stable && c.Member(m.Identity) >= 0 {
			return false
		}
	}
	return true
}

const MaxMembers = 31

// SuccessorName returns the name of the register that decides which
// configuration follows the one with this stamp. Its claims and its operations
// have Succession set.
// Invariant: the register counts the nodes that stay or leave, in every stage.
func SuccessorName(s Stamp) string { return protocol.Successors + string(s) }

// Stage is the progress of an exchange of nodes.
type Stage uint8

const (
	Stable Stage = iota // a majority of the members is a quorum
	// A majority of the nodes that stay or leave is a quorum. Nodes that enter
	// accept claims, but have no vote.
	Learning
	// A quorum needs a majority of the nodes that stay or leave, and also a
	// majority of the nodes that stay or enter.
	Jointly
)

func (s Stage) String() string { return [...]string{"stable", "learning", "joint"}[s] }

// Role says in which set a member counts while nodes are being exchanged.
type Role uint8

const (
	Stays Role = iota
	Leaves
	Enters
)

func (r Role) String() string { return [...]string{"stays", "leaves", "enters"}[r] }
