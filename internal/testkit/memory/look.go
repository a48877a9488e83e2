package memory

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
)

// What a node tells an onlooker about one name, about all names, and about
// itself. Looking changes nothing.

// inspect is inspect.lua.
func (n *Node) inspect(now int64, keys, args []string) []resp.Value {
	m := n.model.Name(keys[1])
	claims := m.Claims(now)
	memory := now - n.marker.born
	if n.model.Recovering(now) > 0 {
		memory = 0
	}
	capacity, votes, foreign := int64(0), int64(0), int64(0)
	plain := m.Plain(now)
	if plain != "" {
		foreign = max(1, m.PlainLeft(now).Milliseconds())
	}
	var all []resp.Value
	for i, c := range claims {
		capacity = int64(m.Capacity())
		voted := int64(0)
		if c.Voted {
			voted = 1
			votes++
		}
		if c.ID.String() == plain {
			foreign = 0
		}
		if i < int(integer(args[0])) {
			all = append(all, id(c.ID), resp.Value{Int: int64(c.Ticket)}, resp.Value{Int: int64(c.Weight)}, resp.Value{Int: c.Expiry - now},
				resp.Value{Int: voted}, resp.Value{Str: []byte(c.Owner)})
		}
	}
	left, outs := m.Evict(now, protocol.Ticket(integer(args[1])))
	heard := int64(0)
	for _, o := range outs {
		heard += 1 + n.publish(o.Owner, push(o.Push))
	}
	head := []resp.Value{{Int: int64(m.Fence())}, {Int: int64(len(claims))}, {Int: foreign}, {Int: memory}, {Int: capacity}, {Int: votes},
		{Int: left.Milliseconds()}, {Int: heard}}
	return append(head, all...)
}

// scan lists the keys of the names that match a pattern, all at once.
func (n *Node) scan(words []string) []resp.Value {
	pattern := "*"
	for i, w := range words[:len(words)-1] {
		if strings.EqualFold(w, "MATCH") {
			pattern = words[i+1]
		}
	}
	v := str("0")
	for _, key := range slices.Sorted(n.model.Names()) {
		if matches(pattern, key) {
			v = append(v, resp.Value{Str: []byte(key)})
		}
		if n.model.Name(key).HasRegister() && matches(pattern, key+":r") {
			v = append(v, resp.Value{Str: []byte(key + ":r")})
		}
	}
	return v
}

// recorded is the record of a name as record.lua keeps it. Its promise is left
// out: no onlooker reads that.
func (n *Node) recorded(now int64, name string) string {
	s, end := n.model.Name(name).RecordedUntil()
	if s.Version == (protocol.Version{}) || end > 0 && end <= now {
		return ""
	}
	erased := 0
	if s.Erased {
		erased = 1
	}
	return fmt.Sprintf("0 0 %s %d %s %d %d %d %s", protocol.ID{}, s.Ticket, s.ID, s.Seq, erased, end, s.Value)
}

// info is what INFO says, of all sections.
func (n *Node) info() string {
	return strings.Join([]string{
		"redis_version:7.0.0", "run_id:" + n.run, "role:master", "connected_slaves:0", "maxmemory_policy:noeviction", "aof_enabled:0", "",
	}, "\r\n")
}
