package libraries

import (
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/bench/report"
)

// Of returns the libraries that can do a job, in the order in which they take
// turns.
func Of(j Job) []Library {
	redsync := Library{Name: report.RedsyncName, Open: openRedsync(false), Commands: ByBoth}
	floor := Library{Name: report.FloorName, Open: OpenFloor(TTL), Commands: ByBoth}
	switch j {
	case Reading:
		return []Library{
			{Name: report.QuorateName, Open: openReaders(false), Commands: ByScript}, redsync, floor,
			{Name: report.AsyncName, Open: openReaders(true), Commands: ByScript},
			{Name: report.LingerName, Open: openReaders(false, quorate.WithLinger(time.Second)), Commands: ByScript},
		}
	case Permits:
		return []Library{
			{Name: report.QuorateName, Open: openPermits, Commands: ByScript, Permits: true}, redsync, floor,
			{Name: report.MutexName, Open: OpenQuorate(false), Commands: ByScript},
		}
	default:
		return []Library{
			{Name: report.QuorateName, Open: OpenQuorate(false), Commands: ByScript, Shares: true}, redsync, floor,
			{Name: report.FencedName, Open: openFenced, Commands: ByScript},
			{Name: report.AsyncName, Open: OpenQuorate(true), Commands: ByScript, Shares: true},
			{Name: report.FastName, Open: openRedsync(true), Commands: ByBoth},
			{Name: report.RueidisName, Open: openRueidis, Commands: ByScript, OneNode: true},
			{Name: report.BsmName, Open: openBSM, Commands: ByScript, OneNode: true},
			{Name: report.SyncName, Open: openSync, Shares: true},
		}
	}
}
