package quorate

import (
	"log/slog"
	"time"

	"github.com/quorate/quorate/internal/setup"
)

// An Option is a setting for [New] and [Connect]. [WithGuard], [WithSkew],
// [WithRetention], [WithPrefix], [WithNodeNames], [WithOwner], [WithLogger],
// [WithObserver], [WithTracer] and [ForDevelopment] apply to everything made
// from the Quorum. A [LockOption] or a [SharedOption] given here is the default
// for every primitive made from it.
//
// If an option is nil or wrong, or contradicts another one, New and Connect
// fail with [ErrInvalid] and say how to fix it.
type Option interface{ option() }

// A LockOption is an [Option] that the constructors of packages [mutex] and
// [rwmutex] also take, for one lock: [WithLinger] and every [SharedOption]. The
// constructors panic if an option is nil, wrong, or contradicts the settings of
// the [Quorum].
//
// [mutex]: https://pkg.go.dev/github.com/quorate/quorate/mutex
// [rwmutex]: https://pkg.go.dev/github.com/quorate/quorate/rwmutex
type LockOption interface {
	Option
	lockOption()
}

// A SharedOption is an [Option] that the constructors of all primitives also
// take: [WithTTL], [WithNodeTimeout], [WithMaxHold], [WithoutRenewal] and
// [WithWarning]. Where [New] would return an error, the constructors panic.
type SharedOption interface {
	LockOption
	OnceOption
	LeaderOption
	PeriodOption
	sharedOption()
}

// A OnceOption is an option of package [once]: a [SharedOption], once.KeepFor
// or once.WithDurable.
//
// [once]: https://pkg.go.dev/github.com/quorate/quorate/once
type OnceOption interface{ onceOption() }

// A LeaderOption is an option of package [leader]: a [SharedOption], or an
// option that package leader defines.
//
// [leader]: https://pkg.go.dev/github.com/quorate/quorate/leader
type LeaderOption interface{ leaderOption() }

// A PeriodOption is an option of package [period]: a [SharedOption], or an
// option that package period defines.
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

// WithTTL sets how long a lease lasts unless it is renewed, and therefore how
// long a name stays taken after its holder has crashed. The library renews
// leases every third of the TTL. The default is 8 s. The TTL must be a whole
// number of milliseconds from 10 ms to 24 h. The guard time must be at least
// 2*TTL + 2*skew, see [WithGuard].
func WithTTL(d time.Duration) SharedOption { return shared(func(s *setup.Settings) { s.TTL = d }) }

// WithNodeTimeout sets how long to wait for one node's reply before treating
// the node as unresponsive. No call waits for a node that it does not need. If
// a node's round trip is longer than half of the node timeout, the library
// waits for two round trips instead, at most TTL/4. The default is 200 ms. The
// timeout must be from 1 ms to TTL/4.
func WithNodeTimeout(d time.Duration) SharedOption {
	return shared(func(s *setup.Settings) { s.NodeTimeout = d })
}

// WithWarning calls f when the lease of a hold has only before left, so that
// the work can stop in time. This happens when renewals fail, or shortly before
// a non-renewed hold ends ([WithoutRenewal], [WithMaxHold]). After a call of f,
// the next call comes only after another successful renewal. By default there
// is no warning. before must be positive and at most half of the TTL.
//
// f runs in a goroutine of its own, so it may take long, and may unlock. On a
// busy process the hold may already have ended, so check the lease. f is not
// called for a hold that begins with less than before left. [Quorum.Close] does
// not wait for f. A panic in f crashes the process.
func WithWarning(before time.Duration, f func(Lease)) SharedOption {
	return shared(func(s *setup.Settings) {
		if s.WarnBefore, s.Warn = before, nil; f != nil {
			s.Warn = func(l any) { f(l.(Lease)) }
		}
	})
}

// WithMaxHold stops renewing a hold d after it began, so that a stuck holder
// loses the hold no later than d + TTL after it began. The context of the hold
// then ends with [ErrLost]. The default is 0: no limit. d must not be negative.
func WithMaxHold(d time.Duration) SharedOption {
	return shared(func(s *setup.Settings) { s.MaxHold = d })
}

// WithoutRenewal disables renewal: a hold ends one TTL after it began, unless
// Extend is called. The context of the hold then ends with [ErrLost]. By
// default holds are renewed.
func WithoutRenewal() SharedOption { return shared(func(s *setup.Settings) { s.NoRenewal = true }) }

// WithLinger keeps the claim of a lock for d after the last Unlock, so that the
// next Lock of the same value costs no round trip. The claim is released at
// once when another claim queues behind it. The default is 0. d must not be
// negative.
func WithLinger(d time.Duration) LockOption {
	return lockSetting{setting{func(s *setup.Settings) { s.Linger = d }}}
}

// WithGuard sets how long a node does not vote after a restart, so that every
// lease that it may have forgotten has expired by then. The default is 20 s.
// The guard time must be a whole number of milliseconds from 2*TTL + 2*skew to
// 720 h (docs/internals/protocol.md, "Restarted nodes").
//
// The first client to use the nodes records its value, and every other client
// uses the recorded value. A client with a longer value is refused with
// [ErrInvalid]. A shorter value has no effect. Use the same value everywhere:
// after a total loss of data, the first client to connect records its value
// again. Use package members to change it.
func WithGuard(d time.Duration) Option {
	return setting{func(s *setup.Settings) { s.Guard, s.GuardGiven = d, true }}
}

// ForDevelopment adapts the settings to a single Redis on a developer's
// machine, which is restarted often: after a restart, the next lock takes 2 s
// instead of 20 s. It sets a TTL of 1 s, a skew of 0 and a guard time of 2 s.
// Later options can override these. With such a short lease, a program that
// stalls for a second loses its locks, so do not use it in production. The
// Quorum logs that it is on.
//
// It is for exactly one node: [New] and [Connect] reject a list of several
// nodes with [ErrInvalid]. A node that has recorded production settings keeps
// its guard time. This client still has a TTL of 1 s then, and the log says so.
// A node that has recorded the settings of ForDevelopment refuses clients
// without it. The error says how to fix that.
func ForDevelopment() Option { return setting{(*setup.Settings).ForDevelopment} }

// WithSkew sets the largest tolerated difference between the clocks of the
// nodes. A node whose clock is further from the clocks of a majority serves no
// new claims, as if it were down. The clocks of clients do not matter. The
// default is 2 s. The skew must be a whole number of milliseconds from 0 to 24
// h. The nodes record it as they record the guard time.
func WithSkew(d time.Duration) Option {
	return setting{func(s *setup.Settings) { s.Skew = d }}
}

// WithRetention sets how long a node remembers the last ticket of a name that
// is no longer in use, so that tokens keep rising. Each such name takes about
// 250 bytes on each node. The default is 5 min. The retention must be a whole
// number of milliseconds from the guard time to 87600 h. The nodes record it as
// they record the guard time.
func WithRetention(d time.Duration) Option {
	return setting{func(s *setup.Settings) { s.Retention = d }}
}

// WithPrefix sets the prefix of the library's own keys. All clients that share
// names must use the same prefix. The redlock key of a mutex is the name
// itself, whatever the prefix, because other Redlock clients look there. The
// default is "quorate". The prefix must be 1 to 1024 bytes long, and must
// not contain braces, spaces or line breaks.
func WithPrefix(p string) Option {
	return setting{func(s *setup.Settings) { s.Prefix = p }}
}

// WithOwner sets a label for this process, for example a service, a pod or a
// release. [Holder], package inspect and "quorate inspect" show it next to the
// host and the process. By default there is no label. A label is at most 64
// printable ASCII characters, without spaces or colons.
func WithOwner(label string) Option {
	return setting{func(s *setup.Settings) { s.Label = label }}
}

// WithNodeNames sets the addresses of the nodes given to [New], one per node,
// as the set records them and other clients dial them: host:port, or
// sentinel:MASTER@HOST:PORT,HOST:PORT with the Sentinels in order. Use it if
// this process reaches the nodes at different addresses than other clients do.
// By default the addresses come from the clients' options. [Connect] takes them
// from its URLs.
func WithNodeNames(names ...string) Option {
	return setting{func(s *setup.Settings) { s.Names = names }}
}

// WithLogger sets where the Quorum logs: nodes that connect and disconnect,
// waits, clock jumps, and lost holds. The default is [slog.Default]. With nil,
// nothing is logged.
//
// The library calls l's handler from the goroutines that serve its connections.
// Therefore the handler must not block, must not end its goroutine (as
// t.FailNow does), and must not call [Quorum.Close]. An [Observer] may do all
// of that.
func WithLogger(l *slog.Logger) Option {
	return setting{func(s *setup.Settings) { s.Logger = l }}
}
