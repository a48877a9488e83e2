package main

import (
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/bench/report"
)

// libraries are those that do a job, in the order in which they take turns.
func libraries(j job) []library {
	redsync := library{name: report.RedsyncName, open: openRedsync(false), commands: byBoth}
	floor := library{name: report.FloorName, open: openFloor, commands: byBoth}
	switch j {
	case reading:
		return []library{
			{name: report.QuorateName, open: openReaders(false), commands: byScript}, redsync, floor,
			{name: report.AsyncName, open: openReaders(true), commands: byScript},
			{name: report.LingerName, open: openReaders(false, quorate.WithLinger(time.Second)), commands: byScript},
		}
	case permits:
		return []library{
			{name: report.QuorateName, open: openPermits, commands: byScript, permits: true}, redsync, floor,
			{name: report.MutexName, open: openQuorate(false), commands: byScript},
		}
	default:
		return []library{
			{name: report.QuorateName, open: openQuorate(false), commands: byScript, shares: true}, redsync, floor,
			{name: report.FencedName, open: openFenced, commands: byScript},
			{name: report.AsyncName, open: openQuorate(true), commands: byScript, shares: true},
			{name: report.FastName, open: openRedsync(true), commands: byBoth},
			{name: report.RueidisName, open: openRueidis, commands: byScript, oneNode: true},
			{name: report.BsmName, open: openBSM, commands: byScript, oneNode: true},
			{name: report.SyncName, open: openSync, shares: true},
		}
	}
}
