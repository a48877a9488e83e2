package protocol

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// This file owns what a set of nodes is: the configuration that its nodes have
// recorded, and the order of configurations. docs/membership.md states the
// rules and proves them.

// Ballot orders what several clients propose. Two are never equal, and a later
// one is higher. It is 11 hexadecimal digits of milliseconds and 8 of chance,
// so nodes compare ballots as texts.
type Ballot string

const ballotLength = 11 + 8

// NewBallot returns a ballot of that moment that is higher than above.
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

// StampOf returns the stamp of a configuration of that epoch.
func StampOf(epoch uint64, b Ballot) Stamp { return Stamp(fmt.Sprintf("%d.%s", epoch, b)) }

func (s Stamp) parts() (epoch uint64, b Ballot, ok bool) {
	e, ballot, _ := strings.Cut(string(s), ".")
	epoch, err := strconv.ParseUint(e, 10, 32)
	return epoch, Ballot(ballot), err == nil && epoch > 0 && len(ballot) == ballotLength && strings.Trim(ballot, "0123456789abcdef") == ""
}

// Epoch returns which configuration of its set it is, from 1 on; 0 for none.
func (s Stamp) Epoch() uint64 {
	epoch, _, _ := s.parts()
	return epoch
}

// Since returns when it was proposed, by the clock of the client that did.
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
	Identity string // of the node: it goes with the node's data
	Addr     string // as the client that recorded the set names it
	Role     Role   // while the nodes are being exchanged
}

// Configuration is which nodes make a quorum, and what all their clients share.
// It does not change: another set of nodes is another Configuration.
type Configuration struct {
	Stamp     Stamp
	Guard     time.Duration
	Retention time.Duration
	Members   []Member
	Stage     Stage
	Origin    Stamp    // of the set's first configuration; empty: it is this one
	Former    []string // addresses of members of before: a client's list may still name them
}

// Addrs returns the addresses of the members.
func (c *Configuration) Addrs() []string {
	addrs := make([]string, 0, len(c.Members))
	for _, m := range c.Members {
		addrs = append(addrs, m.Addr)
	}
	return addrs
}

// Member returns the place of an identity, -1 if no member has it.
func (c *Configuration) Member(identity string) int {
	return slices.IndexFunc(c.Members, func(m Member) bool { return m.Identity == identity })
}

// Place returns the place of an address, -1 if no member has it.
func (c *Configuration) Place(addr string) int {
	return slices.IndexFunc(c.Members, func(m Member) bool { return m.Addr == addr })
}

// Kin reports whether two configurations are of one set: they go back to the
// same first one, or have a member in common. All nodes may have been exchanged
// in between. The stamp of the first one has a ballot, and identities are
// random, so it is no other set. Members are looked at for a set that was
// exchanged by a version that wrote no Origin.
func (c *Configuration) Kin(o *Configuration) bool {
	return c.origin() == o.origin() || slices.ContainsFunc(o.Members, func(m Member) bool { return c.Member(m.Identity) >= 0 })
}

func (c *Configuration) origin() Stamp { return cmp.Or(c.Origin, c.Stamp) }

// Entering reports whether an address is that of a member that enters. It is
// false for no configuration.
func (c *Configuration) Entering(addr string) bool {
	return c != nil && slices.ContainsFunc(c.Members, func(m Member) bool { return m.Addr == addr && m.Role == Enters })
}

// String returns the configuration as nodes keep it. ParseConfiguration reads
// it.
func (c *Configuration) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d %d %d %d", c.Stamp, Layout, c.Guard.Milliseconds(), c.Retention.Milliseconds(), len(c.Members))
	for _, m := range c.Members {
		b.WriteString(" " + m.Identity + " " + quoted.Replace(m.Addr))
	}
	c.appendExchange(&b)
	return b.String()
}

// quoted has an address be one word. Paths of sockets may contain spaces.
var (
	quoted   = strings.NewReplacer("%", "%25", " ", "%20", "\n", "%0a", "\r", "%0d", "\t", "%09")
	unquoted = strings.NewReplacer("%25", "%", "%20", " ", "%0a", "\n", "%0d", "\r", "%09", "\t")
)

// maxMembers bounds what is read. maxNodes bounds how many nodes a client knows
// in its life: it has a bit for each.
const (
	maxMembers = 31
	maxNodes   = 32
)

// Layout is the version of the keys and scripts that the clients of a set
// share. A set is recorded with the version of the client that recorded it.
//
// Invariant: a client of another version is refused by each node of the set.
// Without that a fleet whose clients are upgraded one by one has two kinds of
// clients with other keys at the same nodes, and each kind has a holder.
const Layout = 1

// LayoutOf returns with which Layout a node has recorded its set, from what the
// node keeps; 0 if that makes no sense.
func LayoutOf(text string) int {
	words := strings.Fields(text)
	if len(words) < 6 {
		return 0
	}
	n, err := strconv.ParseUint(words[5], 10, 16)
	if _, _, ok := Stamp(words[4]).parts(); !ok || err != nil {
		return 0
	}
	return int(n)
}

// ParseConfiguration reads what String returns.
func ParseConfiguration(text string) (*Configuration, bool) {
	// The text is a node's, so another program may have written it. What makes
	// no sense is no configuration, and the node is refused; nothing of it may
	// end the process or count.
	words := strings.Fields(text)
	if len(words) < 5 || words[1] != strconv.Itoa(Layout) {
		return nil, false
	}
	c := &Configuration{Stamp: Stamp(words[0])}
	_, _, ok := c.Stamp.parts()
	guard, err1 := strconv.ParseInt(words[2], 10, 48)
	kept, err2 := strconv.ParseInt(words[3], 10, 48)
	n, err3 := strconv.ParseUint(words[4], 10, 8)
	if !ok || err1 != nil || err2 != nil || err3 != nil || guard < 0 || kept < 0 || n == 0 || n > maxMembers || len(words) < 5+2*int(n) {
		return nil, false
	}
	// 48 bits of milliseconds do not fit a Duration.
	const most = int64(1<<63-1) / int64(time.Millisecond)
	c.Guard, c.Retention = time.Duration(min(guard, most))*time.Millisecond, time.Duration(min(kept, most))*time.Millisecond
	for i := range int(n) {
		m := Member{Identity: words[5+2*i], Addr: unquoted.Replace(words[6+2*i])}
		// One identity or one address twice would be one node with two votes,
		// in the list of every client.
		if c.Member(m.Identity) >= 0 || c.Place(m.Addr) >= 0 {
			return nil, false
		}
		c.Members = append(c.Members, m)
	}
	return c, c.parseExchange(words[5+2*n:])
}

// SetPhase is how far the recording of a set has come at a node.
type SetPhase uint8

// The phases.
const (
	NoSet       SetPhase = iota // the node has no configuration: it is new, lost its data, or is used without one
	SetAccepted                 // it has one that may not be recorded by all nodes yet, and serves no other
	SetRecorded                 // it has one that all nodes of the list had recorded
)

// NodeSet is what a node has recorded of its set.
type NodeSet struct {
	Promised Ballot // no lower one is accepted any more
	Accepted Ballot
	Phase    SetPhase
	Regains  bool   // of SetAccepted: it lost its data, and serves no request until it is recorded again
	Life     string // of NoSet: a random word that the node was given; another one after each loss of its data. Empty: none
	Identity string
	Config   *Configuration // nil: NoSet
	Text     string         // as the node keeps it
}

// Stamp returns the stamp of its configuration.
func (n *NodeSet) Stamp() Stamp {
	if n.Config == nil {
		return ""
	}
	return n.Config.Stamp
}

const (
	phases  = "-pc"
	regains = 'r'
)

// ballotOf reads a ballot as nodes keep it: 0 stands for none.
func ballotOf(word string) Ballot {
	if word == "0" {
		return ""
	}
	return Ballot(word)
}

// String returns it as a node keeps it.
func (n *NodeSet) String() string {
	promised, accepted := cmp.Or(n.Promised, "0"), cmp.Or(n.Accepted, "0")
	if n.Config == nil {
		return fmt.Sprintf("%s %s - %s ", promised, accepted, cmp.Or(n.Life, "-"))
	}
	phase := phases[n.Phase]
	if n.Regains {
		phase = regains
	}
	return fmt.Sprintf("%s %s %c %s %v", promised, accepted, phase, n.Identity, n.Config)
}

// ParseNodeSet reads what a node keeps. A node without a record keeps nothing.
func ParseNodeSet(text string) (n NodeSet, ok bool) {
	if text == "" {
		return n, true
	}
	n.Text = text
	words := strings.SplitN(text, " ", 5)
	if len(words) != 5 || len(words[2]) != 1 {
		return n, false
	}
	phase := words[2][0]
	if n.Regains = phase == regains; n.Regains {
		phase = phases[SetAccepted]
	}
	if strings.IndexByte(phases, phase) < 0 {
		return n, false
	}
	n.Promised, n.Accepted = ballotOf(words[0]), ballotOf(words[1])
	if n.Phase = SetPhase(strings.IndexByte(phases, phase)); n.Phase == NoSet {
		if words[3] != "-" {
			n.Life = words[3]
		}
		return n, true
	}
	n.Identity = words[3]
	n.Config, ok = ParseConfiguration(words[4])
	return n, ok
}
