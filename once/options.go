package once

import (
	"fmt"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/setup"
)

// settings are what the options set: those of every primitive, and our own.
type settings struct {
	*setup.Settings
	keep    time.Duration // 0: forever
	durable bool
}

// apply returns the Quorum's settings as the options change them. It panics
// when they are wrong.
func apply(q *core.Quorum, opts []quorate.OnceOption) settings {
	set := settings{Settings: core.Override(q, "once.New", opts)}
	for _, o := range opts {
		if o, ok := o.(own); ok {
			o.set(&set)
		}
	}
	switch {
	case set.keep < 0:
		panic(fmt.Sprintf("quorate: once.New: KeepFor(%v): cannot be negative; 0 means forever", set.keep))
	case set.keep > 0 && set.keep < set.Retention:
		panic(fmt.Sprintf("quorate: once.New: KeepFor(%v) is below the retention of %v: "+
			"choose at least the retention", set.keep, set.Retention))
	case set.keep%time.Millisecond != 0:
		panic(fmt.Sprintf("quorate: once.New: KeepFor(%v): must be a whole "+
			"number of milliseconds", set.keep))
	}
	return set
}

// own is an option that this package alone understands.
type own struct {
	quorate.OnceOption // nil: it makes the type an option of New, and has no other use
	set                func(*settings)
}

// Apply leaves the settings of other primitives unchanged; see apply.
func (own) Apply(*setup.Settings) {}

// KeepFor sets how long the nodes remember that the work is done. After that,
// the next call runs it again. d must be a whole number of milliseconds, and at
// least the retention ([quorate.WithRetention], 5 min by default). The default
// is 0: forever.
func KeepFor(d time.Duration) quorate.OnceOption {
	return own{set: func(s *settings) { s.keep = d }}
}

// WithDurable checks, before the work runs, that a majority of the nodes keeps
// an append-only file and flushes it every second or after every write. The
// record then survives a restart of all nodes. Snapshots alone do not count,
// because the next one may be an hour away. By default nothing is checked.
//
// If too few nodes are durable, the call returns [ErrNotDurable], which says
// what is missing on each node. If too few nodes can be asked, it returns
// [quorate.ErrNoQuorum]; [Once.Do] waits instead.
//
// With appendfsync everysec, a node that loses power can lose its last second
// of writes. The record is lost only if a majority of the nodes lose power
// within a second of writing it.
func WithDurable() quorate.OnceOption {
	return own{set: func(s *settings) { s.durable = true }}
}
