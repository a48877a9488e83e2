package change

import (
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// What an exchange finds out about the nodes' disks: whether a node that
// restarts may come back with the earlier configuration. Exchange decides what
// follows from that (RuleExchangeSaved).

// Persistence is what a node says of its disk.
type Persistence struct {
	Known     bool   // it has answered; without that nothing else counts
	Run       string // of the server, which has said it
	Refused   bool   // it refuses to say, or to write a snapshot
	Log       bool   // it has an append-only file
	Always    bool   // which it syncs with each write
	Saving    bool   // it is writing a snapshot
	Saved     bool   // the last snapshot has not failed
	Snapshots bool   // without Log: it writes snapshots
}

const (
	// fsyncLag is how long a write may be missing from an append-only file:
	// appendfsync everysec promises a second, and Redis waits for another one
	// where the disk is busy.
	fsyncLag = 2 * time.Second

	// saveAgain is the pause after a snapshot that has failed, or that could
	// not begin beside another one.
	saveAgain = time.Second
)

// disk is what one exchange knows of the disk of one member since that has
// moved.
type disk struct {
	run     string        // of the server, in which the rest was found out
	since   protocol.Time // when the member was first seen to have moved; 0: it was not
	saving  bool          // this exchange has had a snapshot begun
	failed  bool          // one of these has failed
	again   protocol.Time // no snapshot is begun earlier
	settled bool          // what it is, is known
}

// told takes what the member says of its disk. It reports whether a restart
// brings back what it keeps now, or nothing, and whether it is to write a
// snapshot: the last one may be an hour old.
//
// Invariant: a snapshot counts that this exchange has had begun after the
// member had moved. One that was under way then may lack the move. A node that
// refuses to say what it keeps, or to write a snapshot, counts as saved:
// without that no managed server could be a member of an exchange.
//
// Invariant: what is not settled is found out again in another run of the
// server. That has lost the snapshot which was being written, and says all the
// same that the last one has not failed.
func (d *disk) told(now protocol.Time, p Persistence) (saved, snapshot bool) {
	if p.Known && p.Run != d.run && !d.settled {
		*d = disk{run: p.Run}
	}
	if d.since == 0 {
		d.since = now
	}
	switch {
	case d.settled || !p.Known:
	case p.Refused:
		d.settled = true
	case p.Log:
		lag := fsyncLag //mutant:ConstFsyncLag
		d.settled = p.Always || now.Sub(d.since) >= lag
	case p.Saving:
	case d.saving && p.Saved:
		d.settled = true
	case d.saving:
		d.saving, d.failed = false, true
		d.later(now)
	case now < d.again:
	case !p.Snapshots: // it comes back empty
		d.settled = true
	default:
		return false, true
	}
	return d.settled, false
}

// begun records whether the snapshot that told asked for has begun. An answer
// from another run of the server does not count.
func (d *disk) begun(now protocol.Time, p Persistence) {
	d.settled, d.saving = p.Refused, p.Saving && p.Run == d.run
	if !p.Refused && !d.saving {
		d.later(now)
	}
}

// later postpones the next snapshot.
func (d *disk) later(now protocol.Time) {
	pause := saveAgain //mutant:ConstSaveAgain
	d.again = now.Add(pause)
}
