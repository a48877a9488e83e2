package peers

// Nodes of the client's list that the set does not record, and members that the
// list does not name.

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/transport"
)

// unlisted adds a hint to the error of a node that cannot be reached: this
// client dials the address that the set records, which is not in its own list.
// The list may have another port or network of the same server. If the listed
// servers show which members they are, the command has all that have moved,
// because a majority may have.
func (s *members) unlisted(n *Node, err error) error {
	c := s.Config.Load()
	_, answered := errors.AsType[resp.Error](err)
	if err == nil || answered || errors.Is(err, fault.ErrRejudged) || n.Seed() || c.Numbered(n.Index) == nil {
		return err
	}
	list, member := s.list(), c.Numbered(n.Index)
	known := func(addr string) bool { return c.Place(addr) >= 0 }
	if slices.ContainsFunc(list, member.Has) {
		return err
	}
	at, moves, moved := "", member.Addr+" ADDRESS", map[string]string{}
	elsewhere := s.elsewhere(c)
	for _, listed := range slices.Sorted(maps.Keys(elsewhere)) {
		if recorded := elsewhere[listed]; recorded != "" && s.ps.away(c.Members[c.Place(recorded)].Number) {
			moved[recorded] = listed
		}
	}
	if at = moved[member.Addr]; at != "" {
		moves = movesOf(c, moved)
	} else if at = either(slices.DeleteFunc(list, known)); at == "" {
		return err
	}
	return fmt.Errorf("%w; the set records this node at %s, which is not in this client's list: if all clients "+
		"reach its server at %s now, run with this client's list: quorate members move %s; if some still use %s, "+
		"run with the earlier list, on a host that reaches both: quorate members move --keep %s URL",
		err, strings.Join(member.All(), " and "), at, moves, member.Addr, member.Addr)
}

// away reports whether no connection to member k is ready.
func (ps *Peers) away(k int) bool {
	n := ps.Node(k)
	return n == nil || n.Err() != nil
}

// movesOf returns the arguments of the command that records where members are,
// by their recorded addresses. The name of a Sentinel set is no argument.
func movesOf(c *nodeset.Configuration, moved map[string]string) string {
	var words []string
	for _, addr := range c.Addrs() {
		switch to := moved[addr]; {
		case strings.HasPrefix(to, transport.SentinelPrefix):
			words = append(words, addr, "URL")
		case to != "":
			words = append(words, addr, to)
		}
	}
	return strings.Join(words, " ")
}

// elsewhere returns the addresses of this client's list that the set does not
// record, but whose servers show members, each with the recorded address. The
// address is empty for a server that shows no member.
func (s *members) elsewhere(c *nodeset.Configuration) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]string{}
	for i, addr := range s.known.List() {
		if has := s.known.Has(nodeset.Seed + i); has != nil && c.Place(addr) < 0 {
			all[addr] = ""
			if k := c.Member(has.Identity); k >= 0 {
				all[addr] = c.Members[k].Addr
			}
		}
	}
	return all
}

// logUnlisted logs the nodes of this client's list that the set does not
// record.
func (s *members) logUnlisted(c *nodeset.Configuration) {
	elsewhere := s.elsewhere(c)
	for _, addr := range s.list() {
		log := s.ps.Set.Logger.With("node", addr, "set", c.Addrs())
		switch member, met := elsewhere[addr]; {
		case c.Place(addr) >= 0:
		case member != "":
			log.Info("quorate: a listed node is a member that the set records at another address; if it has moved, "+
				"run quorate members move", "member", member)
		case met:
			log.Info("quorate: a listed node is not a member of the set and has no vote; remove it from this " +
				"client's list")
		default:
			log.Info("quorate: a listed node has no vote, because the set records no member at its address")
		}
	}
}

// either formats addresses of which one may be meant.
func either(addrs []string) string {
	if len(addrs) == 1 {
		return addrs[0]
	}
	return "one of " + strings.Join(addrs, ", ")
}
