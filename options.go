package quorate

import (
	"log/slog"
	"time"

	"github.com/quorate/quorate/internal/setup"
)

// An Option is a setting of [New] and [Connect]. Every option of this package
// is one. [WithGuard], [WithSkew], [WithRetention], [WithPrefix], [WithLogger],
// [WithObserver], [WithTracer] and [WithOwner] are no more than that: all
// primitives of a [Quorum] share them. A [LockOption] or a [SharedOption] given
// here is the default for all that is made from the Quorum.
//
// New and Connect refuse a wrong value, a contradiction and a nil option with
// [ErrInvalid] and the remedy. An Option is safe for concurrent use and may be
// given to several calls.
type Option interface{ option() }

// A LockOption is an [Option] that the New of packages [mutex] and [rwmutex]
// take, too, for one lock. An option that is nil, wrong, or contradicts the
// settings of the [Quorum] is a programmer's error there: New panics and names
// the remedy. A LockOption is safe for concurrent use.
//
// [mutex]: https://pkg.go.dev/github.com/quorate/quorate/mutex
// [rwmutex]: https://pkg.go.dev/github.com/quorate/quorate/rwmutex
type LockOption interface {
	Option
	lockOption()
}

// A SharedOption is an [Option] that the constructors of all primitives take,
// too, for one primitive. They panic where [New] fails. A SharedOption is safe
// for concurrent use.
type SharedOption interface {
	LockOption
	OnceOption
	LeaderOption
	PeriodOption
	sharedOption()
}

// A OnceOption is an option of package [once]: a [SharedOption], or one that
// package once makes. It is safe for concurrent use.
//
// [once]: https://pkg.go.dev/github.com/quorate/quorate/once
type OnceOption interface{ onceOption() }

// A LeaderOption is an option of package [leader]: a [SharedOption], or one
// that package leader makes. It is safe for concurrent use.
//
// [leader]: https://pkg.go.dev/github.com/quorate/quorate/leader
type LeaderOption interface{ leaderOption() }

// A PeriodOption is an option of package [period]: a [SharedOption], or one
// that package period makes. It is safe for concurrent use.
//
// [period]: https://pkg.go.dev/github.com/quorate/quorate/period
type PeriodOption interface{ periodOption() }

// The types of this package's options: each accepts what the next one does.
type (
	setting       struct{ setup.Setting }
	lockSetting   struct{ setting }
	sharedSetting struct{ lockSetting }
)

func (setting) option()             {}
func (lockSetting) lockOption()     {}
func (sharedSetting) onceOption()   {}
func (sharedSetting) leaderOption() {}
func (sharedSetting) periodOption() {}
func (sharedSetting) sharedOption() {}

func shared(f setup.Setting) SharedOption { return sharedSetting{lockSetting{setting{f}}} }

// WithTTL sets how long a lease lasts unless it is renewed. A name stays taken
// for so long after its holder has died. The lease is renewed every third of
// the TTL. Default 8 s; whole milliseconds from 10 ms to 24 h. The guard time
// must be at least 2*TTL + 2*skew, see [WithGuard].
func WithTTL(d time.Duration) SharedOption { return shared(func(s *setup.Settings) { s.TTL = d }) }

// WithNodeTimeout sets how long to wait for one node's reply before treating
// the node as unresponsive. No call waits for a node that its answer does not
// need. A node whose round trip is longer than half of the node timeout is
// given two round trips, at most TTL/4. Default 200 ms; from 1 ms to TTL/4.
func WithNodeTimeout(d time.Duration) SharedOption {
	return shared(func(s *setup.Settings) { s.NodeTimeout = d })
}

// WithWarning has f called when a hold has only before left of its lease, so
// that its work can stop in time. That is so when renewals do not succeed, and
// before the end of a hold that is not renewed ([WithoutRenewal],
// [WithMaxHold]). It is called once, until a renewal succeeds. Default nil:
// none. before must be above 0, and at most half of the TTL: when a renewal
// begins about two thirds are left.
//
// f runs in a goroutine of its own, so it may take long, and may unlock. On a
// busy process the hold may have ended meanwhile: ask the lease. It is not
// called for a hold that begins with less than before left, as a claim that is
// handed over in the process may. [Quorum.Close] does not wait for f. A panic
// in f ends the process.
func WithWarning(before time.Duration, f func(Lease)) SharedOption {
	return shared(func(s *setup.Settings) {
		if s.WarnBefore, s.Warn = before, nil; f != nil {
			s.Warn = func(l any) { f(l.(Lease)) }
		}
	})
}

// WithMaxHold stops the renewal of a hold d after it began. So a holder that is
// stuck loses it, at the latest d + TTL after it began; its context then ends
// with [ErrLost]. Default 0: no bound. It cannot be negative.
func WithMaxHold(d time.Duration) SharedOption {
	return shared(func(s *setup.Settings) { s.MaxHold = d })
}

// WithoutRenewal lets a hold end one TTL after it began, unless Extend is
// called. Its context then ends with [ErrLost]. Default: holds are renewed.
func WithoutRenewal() SharedOption { return shared(func(s *setup.Settings) { s.NoRenewal = true }) }

// WithLinger keeps the claim of a lock for d after the last Unlock, so that the
// next Lock of the same value costs no round trip. The claim is given up at
// once when another claim is queued behind it. Default 0: it is given up at
// Unlock. It cannot be negative.
func WithLinger(d time.Duration) LockOption {
	return lockSetting{setting{func(s *setup.Settings) { s.Linger = d }}}
}

// WithGuard sets how long a node that lost its data does not vote, so that
// every lease that it has forgotten has ended by then. Default 20 s; from 2*TTL
// + 2*skew to 720 h, in whole milliseconds (docs/internals/protocol.md,
// "Restarted nodes"). The nodes record that of the client that has them record
// their set, and all clients go by it. A longer one than is recorded is refused
// with [ErrInvalid], a shorter one has no effect. So give all clients the same
// one: where all nodes have lost their data, a client that has not known their
// set records its own. Package members changes it for the set.
func WithGuard(d time.Duration) Option {
	return setting{func(s *setup.Settings) { s.Guard, s.GuardGiven = d, true }}
}

// WithSkew sets the largest tolerated difference between the clocks of the
// nodes. A node whose clock differs by more from those of a majority serves no
// new claims, as one that is down. Tokens rise whatever the clocks show. The
// clocks of clients do not matter. Default 2 s; from 0 to 24 h, in whole
// milliseconds.
func WithSkew(d time.Duration) Option {
	return setting{func(s *setup.Settings) { s.Skew = d }}
}

// WithRetention sets how long a node remembers the last ticket of a name that
// no claim uses any more, so that tokens keep rising. As the guard time it is
// recorded with the set. Default 5 min; from the guard time to 87600 h, in
// whole milliseconds.
func WithRetention(d time.Duration) Option {
	return setting{func(s *setup.Settings) { s.Retention = d }}
}

// WithPrefix sets the prefix of the keys that the library keeps for itself. It
// must be the same for all clients that share names. The redlock key of a mutex
// is the name as given, whatever the prefix: other Redlock clients look there.
// Default "quorate"; 1 to 1024 bytes, without braces, blanks and line ends.
func WithPrefix(p string) Option {
	return setting{func(s *setup.Settings) { s.Prefix = p }}
}

// WithOwner sets a label of this process, such as a service, a pod or a
// release. [Holder], package inspect and "quorate inspect" show it beside host
// and process. It changes nothing else. Default "", none; at most 64 printable
// ASCII characters without blanks and colons, as each claim carries it.
func WithOwner(label string) Option {
	return setting{func(s *setup.Settings) { s.Label = label }}
}

// WithNodeNames sets the addresses of the nodes that are given to [New], one
// for each, as the set records them and other clients dial them: host:port, or
// sentinel:MASTER@HOST:PORT,HOST:PORT with the Sentinels in order. A client of
// a Sentinel set needs one: it does not tell which set it is of. Default: the
// address in the client's options. [Connect] takes them from its URLs.
func WithNodeNames(names ...string) Option {
	return setting{func(s *setup.Settings) { s.Names = names }}
}

// WithLogger sets where the Quorum logs: nodes that come and go, waiting for
// the guard time, clocks that jump, lost holds. Default [slog.Default]; nil
// logs nothing.
//
// The handler of l is called by goroutines that the Quorum works with, such as
// those of its connections. So it must not block: the nodes wait. It must not
// end its goroutine, as t.FailNow does: the node is lost with it. It must not
// call [Quorum.Close] either, which waits for these goroutines and would not
// return. An [Observer] may.
func WithLogger(l *slog.Logger) Option {
	return setting{func(s *setup.Settings) { s.Logger = l }}
}
