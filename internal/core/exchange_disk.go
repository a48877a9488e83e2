package core

// This file owns what an exchange finds out about the disks of the nodes:
// whether a node that restarts may come back with the configuration of before.
// protocol.Exchange decides what follows from it (RuleExchangeSaved).

import (
	"context"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
)

// fsyncLag is how long a write may be missing from an append-only file:
// appendfsync everysec promises a second, and Redis waits for another one where
// the disk is busy.
const fsyncLag = 2 * time.Second

// saveAgain is the pause after a snapshot that has failed, or that could not
// begin beside another one.
const saveAgain = time.Second

// disk is what one exchange knows of the disk of one member since that has
// moved. One goroutine uses it at a time.
type disk struct {
	since   protocol.Time // when the member was first seen to have moved; 0: it was not
	saving  bool          // this exchange has had a snapshot begun
	again   protocol.Time // no snapshot is begun earlier
	settled bool          // what it is, is known
}

// saved reports whether a restart of n brings back what it keeps now, or
// nothing. It has the node write a snapshot if it keeps only these: the last
// one may be an hour old.
//
// Invariant: a snapshot counts that this exchange has had begun after the
// member had moved. One that was under way then may lack the move. A node that
// refuses to say what it keeps, or to write a snapshot, counts as saved:
// without that no managed server could be a member of an exchange. The log says
// what an operator has to see to.
func (d *disk) saved(ctx context.Context, n *node) bool {
	q := n.q
	if d.since == 0 {
		d.since = q.now()
	}
	if d.settled {
		return true
	}
	v, err := n.do(ctx, "INFO", "persistence")
	if err != nil {
		return d.refused(n, err)
	}
	info := infoFields(text(v, 0))
	switch {
	case info["aof_enabled"] == "1":
		d.settled = n.info().FsyncAlways || q.now().Sub(d.since) >= fsyncLag
		return d.settled
	case info["rdb_bgsave_in_progress"] == "1":
		return false
	case d.saving && info["rdb_last_bgsave_status"] == "ok":
		d.settled = true
		return true
	case d.saving:
		d.saving, d.again = false, q.now().Add(saveAgain)
		q.set.Logger.Warn("quorate: a node has failed to write a snapshot; an exchange of nodes waits for it", "node", n.addr)
		return false
	case q.now() < d.again:
		return false
	}
	if v, err = n.do(ctx, "CONFIG", "GET", "save"); err != nil {
		return d.refused(n, err)
	}
	if text(v, 1) == "" { // it writes no snapshots, so it comes back empty
		d.settled = true
		return true
	}
	if _, err = n.do(ctx, "BGSAVE"); err != nil {
		d.again = q.now().Add(saveAgain)
		return d.refused(n, err)
	}
	d.saving = true
	return false
}

// refused reports whether an error is a node's refusal, which no other try
// changes.
func (d *disk) refused(n *node, err error) bool {
	e, refused := err.(resp.Error)
	if !refused || e.Code() == "ERR" && (strings.Contains(string(e), "in progress") || strings.Contains(string(e), "child process")) || e.Code() == "LOADING" || e.Code() == "BUSY" {
		return false
	}
	d.settled = true
	n.q.set.Logger.Warn("quorate: it is unknown whether a node has an exchange of nodes on its disk; if it is restarted, see that it does not come back with a file of before the exchange",
		"node", n.addr, "error", err)
	return true
}

// infoFields returns the lines of an INFO.
func infoFields(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[key] = value
		}
	}
	return fields
}
