package core

// This file owns the command by which a node begins another incarnation, and
// what is said of replies that are of another one. What counts is decided in
// nodeset/incarnation.go.

import (
	"errors"
	"strconv"

	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
)

// a.Try comes back, so that the Client knows an answer to an older question.
func (n *node) beginIncarnation(a *process.Action) {
	q := n.q
	jumped, try := strconv.FormatUint(uint64(a.Incarnation), 10), a.Try
	n.send(&adminRequest{command: script.AppendMark(nil, q.members.markerKey(), newID(), n.info().Run(), jumped), reply: func(v []resp.Value, err error) {
		inc, _, e := script.DecodeMarker(v)
		q.driver.carryOut(q.driver.client.Marked(q.now(), n.index, try, inc, err == nil && e == nil))
	}})
}

func (q *Quorum) addr(i int) string {
	if n := q.node(i); n != nil {
		return n.addr
	}
	return ""
}

var errOtherIncarnation = errors.New("has lost its data, or got another node's, since the connection began")

// checkIncarnation says why a reply of that incarnation does not count. It is
// for answers beside claims and records, such as a marker. The caller holds no
// lock: what follows may be an event of each claim.
func (d *driver) checkIncarnation(node int, inc protocol.Incarnation) error {
	why, do := d.client.Check(d.q.now(), node, inc)
	d.carryOut(do)
	return d.uncounted(node, why)
}

// uncounted returns why a reply of a node does not count, nil if it counts.
func (d *driver) uncounted(_ int, why protocol.Why) error {
	switch why {
	case protocol.Counts:
		return nil
	case protocol.Parted:
		return errParted
	}
	return errOtherIncarnation
}
