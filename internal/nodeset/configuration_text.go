package nodeset

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// A configuration as the nodes keep it.

// String returns the configuration as nodes keep it: see ParseConfiguration.
func (c *Configuration) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d", c.Stamp, Layout)
	for _, s := range []Shared{c.Now, c.Next} {
		fmt.Fprintf(&b, " %d %d %d", s.Guard.Milliseconds(), s.Retention.Milliseconds(), s.Skew.Milliseconds())
	}
	fmt.Fprintf(&b, " %c %s %d %d", stages[c.Stage], c.Origin, c.Last, len(c.Members))
	for _, m := range c.Members {
		fmt.Fprintf(&b, " %d%c %s %s", m.Number, roles[m.Role], m.Identity, quoted.Replace(m.Addr))
		for _, addr := range m.Also {
			b.WriteString(nextAddr + quoted.Replace(addr))
		}
	}
	return b.String()
}

// quoted turns an address into a single word. Paths of sockets may contain
// spaces.
var (
	quoted   = strings.NewReplacer("%", "%25", " ", "%20", "\n", "%0a", "\r", "%0d", "\t", "%09")
	unquoted = strings.NewReplacer("%25", "%", "%20", " ", "%0a", "\n", "%0d", "\r", "%09", "\t")
)

// nextAddr stands before each further address of a member. quoted leaves no
// percent sign before a comma, so no single address contains it: a text of one
// address for each member reads as it always did.
const nextAddr = "%,"

// Layout is the version of the keys and scripts that the clients of a set
// share. A set is recorded with the version of the client that recorded it.
// Each node of the set refuses a client of another version. Otherwise each kind
// of clients would have a holder while a fleet is upgraded.
const Layout = 1

// LayoutOf returns the Layout of a node's record of its set, see NodeSet.String; 0
// if the record is malformed or has no configuration. It must read the records of
// other versions, which ParseNodeSet rejects. So the stamp and the Layout are the
// fifth and the sixth word in every version.
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

// headWords is how many words a configuration has before its members.
const headWords = 12

// ParseConfiguration parses what String returns. The text comes from a node, so
// another program may have written it. Malformed text is not a configuration:
// it must neither crash the process nor count.
func ParseConfiguration(text string) (*Configuration, bool) {
	words := strings.Fields(text)
	if len(words) < headWords || words[1] != strconv.Itoa(Layout) {
		return nil, false
	}
	c := &Configuration{Stamp: Stamp(words[0]), Origin: Stamp(words[9])}
	_, _, ok1 := c.Stamp.parts()
	_, _, ok2 := c.Origin.parts()
	last, err1 := strconv.ParseUint(words[10], 10, 8)
	n, err2 := strconv.ParseUint(words[11], 10, 8)
	stage := strings.Index(stages, words[8])
	if !ok1 || !ok2 || err1 != nil || err2 != nil || last >= protocol.MaxNodes || len(words[8]) != 1 ||
		stage < 0 ||
		n == 0 || n > MaxMembers || len(words) != headWords+3*int(n) {
		return nil, false
	}
	c.Stage, c.Last = Stage(stage), int(last)
	if !c.Now.parse(words[2:5]) || !c.Next.parse(words[5:8]) {
		return nil, false
	}
	for i := range int(n) {
		if !c.parseMember(words[headWords+3*i:]) {
			return nil, false
		}
	}
	return c, c.Deciders() != 0
}

func (s *Shared) parse(words []string) bool {
	// 48 bits of milliseconds do not fit a Duration.
	const most = uint64(1<<63-1) / uint64(time.Millisecond)
	for i, to := range []*time.Duration{&s.Guard, &s.Retention, &s.Skew} {
		n, err := strconv.ParseUint(words[i], 10, 48)
		if err != nil {
			return false
		}
		*to = time.Duration(min(n, most)) * time.Millisecond
	}
	return true
}

// parseMember parses one member. If an identity, an address or a number
// occurred twice, one node would have two votes for every client.
func (c *Configuration) parseMember(words []string) bool {
	head := words[0]
	n, err := strconv.ParseUint(head[:len(head)-1], 10, 8)
	role := strings.IndexByte(roles, head[len(head)-1])
	m := Member{Number: int(n), Identity: words[1], Role: Role(max(0, role))}
	if err != nil || role < 0 || n >= protocol.MaxNodes || c.Stage == Stable && m.Role != Stays ||
		c.Numbered(m.Number) != nil || c.Member(m.Identity) >= 0 || !c.parseAddrs(&m, words[2]) {
		return false
	}
	c.Members = append(c.Members, m)
	return true
}

// parseAddrs parses the addresses of a member, which no other member may have.
func (c *Configuration) parseAddrs(m *Member, word string) bool {
	all := strings.Split(word, nextAddr)
	for i, text := range all {
		addr := unquoted.Replace(text)
		switch {
		case addr == "" || c.Place(addr) >= 0 || m.Has(addr):
			return false
		case i == 0:
			m.Addr = addr
		default:
			m.Also = append(m.Also, addr)
		}
	}
	return len(all) <= MaxAddrs
}

// The letters of the stages and of the roles.
const (
	stages = "slj"
	roles  = "sle"
)
