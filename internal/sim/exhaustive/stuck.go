//go:build search

package exhaustive

// stuck lets the world be calm from s on: what is on its way arrives in order,
// what was given up never does, holders release at once. Then every attempt
// must come to its end, admitted or given up, and leave nothing on the nodes
// (save where a leave was given up or overtaken: a lease clears that).
func (x *space) stuck(s state) string {
	for z := range uint8(nodes) {
		for i := range uint8(len(x.cfg.Claims)) {
			l := x.linkOf(&s, i, z)
			l.late = link{}.late
			x.setLink(&s, i, z, l)
			if l.full {
				s, _ = x.apply(s, action{kind: actRoom, claim: i, node: z})
			}
		}
	}
	s.left = budget{beats: unbounded, units: unbounded, since: s.left.since}
	for range x.cfg.Guard + 8*x.cfg.TTL {
		if !x.settleDown(&s) {
			return "messages without end"
		}
		waiting := false
		for _, id := range s.claims {
			waiting = waiting || id != 0 && !x.claims[id].final
		}
		if !waiting {
			if x.cfg.Fails+x.cfg.Cuts+x.cfg.Repeats+x.cfg.Drops == 0 && !x.empty(s) {
				return "something is left on a node without a holder"
			}
			return ""
		}
		x.pass(&s, -1)
	}
	return "a claim waits forever"
}

// settleDown delivers everything, and reports whether there is an end to it.
func (x *space) settleDown(s *state) bool {
	for range 1000 {
		settled := true
		for i, id := range s.claims {
			if id == 0 {
				continue
			}
			if x.claims[id].valid {
				x.happen(s, uint8(i), claimEvent{kind: evLeave})
				settled = false
			}
			for z := range uint8(nodes) {
				for _, a := range x.messages(*s, uint8(i), z, nil) {
					if a.kind == actArrive || a.kind == actAnswer || a.kind == actPush {
						*s, _ = x.apply(*s, a)
						settled = false
						break // the rest of the list has moved
					}
				}
			}
		}
		if settled {
			return true
		}
	}
	return false
}

func (x *space) empty(s state) bool {
	for _, col := range s.cols {
		if p := &x.nodes[x.cols[col].node]; len(p.n.Name("").Claims(p.at)) > 0 {
			return false
		}
	}
	return true
}
