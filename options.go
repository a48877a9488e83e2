package quorate

import (
	"log/slog"
	"time"

	"github.com/quorate/quorate/internal/setup"
)

// An Option is a setting for [New] and [Connect]. [WithGuard], [WithSkew],
// [WithRetention], [WithPrefix], [WithNodeNames], [WithOwner], [WithLogger],
// [WithObserver], [WithTracer] and [ForDevelopment] apply to everything created
// from the Quorum. A [LockOption] or [SharedOption] passed here becomes the
// default for every primitive created from it.
//
// If an option is nil, invalid, or conflicts with another one, New and Connect
// return [ErrInvalid] with a message that says how to fix it.
type Option interface{ option() }

// A LockOption is an [Option] that you can also pass to the constructors in
// packages [mutex] and [rwmutex], for a single lock: [WithLinger] or any
// [SharedOption]. The constructors panic if an option is nil, invalid, or
// conflicts with the settings of the [Quorum].
//
// [mutex]: https://pkg.go.dev/github.com/quorate/quorate/mutex
// [rwmutex]: https://pkg.go.dev/github.com/quorate/quorate/rwmutex
type LockOption interface {
	Option
	lockOption()
}

// A SharedOption is an [Option] that you can also pass to the constructor of
// any primitive: [WithTTL], [WithNodeTimeout], [WithMaxHold], [WithoutRenewal]
// and [WithWarning]. Where [New] would return an error, the constructors panic.
type SharedOption interface {
	LockOption
	OnceOption
	LeaderOption
	PeriodOption
	sharedOption()
}

// A OnceOption is an option for package [once]: a [SharedOption], once.KeepFor
// or once.WithDurable.
//
// [once]: https://pkg.go.dev/github.com/quorate/quorate/once
type OnceOption interface{ onceOption() }

// A LeaderOption is an option for package [leader]: a [SharedOption], or an
// option that package leader defines.
//
// [leader]: https://pkg.go.dev/github.com/quorate/quorate/leader
type LeaderOption interface{ leaderOption() }

// A PeriodOption is an option for package [period]: a [SharedOption], or an
// option that package period defines.
//
// [period]: https://pkg.go.dev/github.com/quorate/quorate/period
type PeriodOption interface{ periodOption() }

// The types of this package's options. Each of them is a setting.
type (
	setting       struct{ setup.Setting }
	lockSetting   struct{ setting }
	sharedSetting struct{ setting }
)

func (setting) option()             {}
func (lockSetting) lockOption()     {}
func (sharedSetting) lockOption()   {}
func (sharedSetting) onceOption()   {}
func (sharedSetting) leaderOption() {}
func (sharedSetting) periodOption() {}
func (sharedSetting) sharedOption() {}

func shared(f setup.Setting) SharedOption { return sharedSetting{setting{f}} }

// WithTTL sets how long a lease lasts unless it is renewed, and therefore how
// long a name stays locked after its holder crashes. Leases are renewed every
// TTL/3. The default is 8 s. The TTL must be a whole number of milliseconds
// from 10 ms to 24 h. The guard time must be at least 2*TTL + 2*skew; see
// [WithGuard].
func WithTTL(d time.Duration) SharedOption { return shared(func(s *setup.Settings) { s.TTL = d }) }

// WithNodeTimeout sets how long to wait for a node's reply before treating the
// node as unresponsive. Calls never wait for a node that they do not need. If a
// node's round trip takes more than half of the node timeout, the library waits
// for two round trips instead, but at most TTL/4. The default is 200 ms. The
// timeout must be from 1 ms to TTL/4.
func WithNodeTimeout(d time.Duration) SharedOption {
	return shared(func(s *setup.Settings) { s.NodeTimeout = d })
}

// WithWarning calls f when a hold's lease is down to the duration before, so
// that the work can stop in time. This happens when renewals fail, or shortly
// before a hold that is not renewed ends ([WithoutRenewal], [WithMaxHold]). f
// is not called again until the lease has been renewed. By default there is no
// warning. before must be positive and at most half of the TTL.
//
// f runs in its own goroutine, so it may take its time, and it may unlock. In a
// busy process the hold may already have ended, so check the lease. f is not
// called for a hold that starts with less than before left. [Quorum.Close] does
// not wait for f. A panic in f crashes the process.
func WithWarning(before time.Duration, f func(Lease)) SharedOption {
	return shared(func(s *setup.Settings) {
		if s.WarnBefore, s.Warn = before, nil; f != nil {
			s.Warn = func(l any) { f(l.(Lease)) }
		}
	})
}

// WithMaxHold stops renewing a hold once it has lasted for d, so that a stuck
// holder loses the lock after d + TTL at the latest. The hold's context then
// ends with [ErrLost]. The default is 0, which means no limit. d must not be
// negative.
func WithMaxHold(d time.Duration) SharedOption {
	return shared(func(s *setup.Settings) { s.MaxHold = d })
}

// WithoutRenewal disables renewal: a hold ends after one TTL unless you call
// Extend. The hold's context then ends with [ErrLost]. By default holds are
// renewed.
func WithoutRenewal() SharedOption { return shared(func(s *setup.Settings) { s.NoRenewal = true }) }

// WithLinger keeps the claim on a lock for d after the last Unlock, so that the
// next Lock of the same value does not cost a round trip. The claim is released
// as soon as another claim queues behind it. The default is 0. d must not be
// negative.
func WithLinger(d time.Duration) LockOption {
	return lockSetting{setting{func(s *setup.Settings) { s.Linger = d }}}
}

// WithGuard sets how long a node waits after a restart before it votes, so that
// every lease it may have forgotten has expired by then. The default is 20 s.
// The guard time must be a whole number of milliseconds from 2*TTL + 2*skew to
// 720 h (docs/internals/protocol.md, "Restarted nodes").
//
// The first client to use the nodes records its value, and every other client
// uses the recorded value. A client with a longer value is refused with
// [ErrInvalid]. A shorter value has no effect. Use the same value everywhere:
// if all nodes lose their data, the first client to connect records its value
// again. To change the recorded value, use package members.
func WithGuard(d time.Duration) Option {
	return setting{func(s *setup.Settings) { s.Guard, s.GuardGiven = d, true }}
}

// ForDevelopment is for a single Redis on a developer's machine, which is
// restarted often: after a restart, the next lock takes 2 s instead of 20 s. It
// sets the TTL to 1 s, the skew to 0 and the guard time to 2 s. Later options
// can override these. Do not use it in production: with such a short lease, a
// program that stalls for a second loses its locks. The Quorum logs that it is
// on.
//
// It only works with a single node: [New] and [Connect] reject a longer list
// with [ErrInvalid]. If the node has already recorded production settings, it
// keeps its guard time, and the log says so, but this client still uses a TTL
// of 1 s. If the node has recorded the settings of ForDevelopment, it refuses
// clients without the option, with an error that says how to fix that.
func ForDevelopment() Option { return setting{(*setup.Settings).ForDevelopment} }

// WithSkew sets how far the clocks of the nodes may differ. A node whose clock
// is further off than that from the clocks of a majority serves no new claims,
// as if it were down. The clocks of clients do not matter. The default is 2 s.
// The skew must be a whole number of milliseconds from 0 to 24 h. The nodes
// record it in the same way as the guard time.
func WithSkew(d time.Duration) Option {
	return setting{func(s *setup.Settings) { s.Skew = d }}
}

// WithRetention sets how long a node remembers the last ticket of a name that
// is no longer in use, so that tokens keep increasing. Each such name takes up
// about 250 bytes on each node. The default is 5 min. The retention must be a
// whole number of milliseconds from the guard time to 87600 h. The nodes record
// it in the same way as the guard time.
func WithRetention(d time.Duration) Option {
	return setting{func(s *setup.Settings) { s.Retention = d }}
}

// WithPrefix sets the prefix of the library's own keys. All clients that share
// names must use the same prefix, and the same database number. The Redlock key of a mutex has no prefix: it
// is the name itself, because that is where other Redlock clients look. The
// default is "quorate". The prefix must be 1 to 1024 bytes long, and must not
// contain braces, spaces or line breaks.
func WithPrefix(p string) Option {
	return setting{func(s *setup.Settings) { s.Prefix = p }}
}

// WithOwner sets a label for this process, such as the name of a service, pod
// or release. [Holder], package inspect and "quorate inspect" show it along
// with the host and the process. By default there is no label. A label consists
// of at most 64 printable ASCII characters, without spaces or colons.
func WithOwner(label string) Option {
	return setting{func(s *setup.Settings) { s.Label = label }}
}

// WithNodeNames sets the addresses to record for the nodes passed to [New], one
// per node. Other clients dial these addresses: host:port, or
// sentinel:MASTER@HOST:PORT,HOST:PORT with the Sentinels in order. Use it if
// this process reaches the nodes at different addresses than other clients do.
// By default the addresses come from the clients' options. [Connect] takes them
// from its URLs.
func WithNodeNames(names ...string) Option {
	return setting{func(s *setup.Settings) { s.Names = names }}
}

// WithLogger sets the logger of the Quorum. It logs nodes that connect and
// disconnect, waits, clock jumps, and lost holds. The default is
// [slog.Default]. If l is nil, nothing is logged.
//
// The goroutines that serve the connections wait for l's handler, so the
// handler must not block and must not call [Quorum.Close]. An [Observer] may do
// both. A panic in the handler crashes the process.
func WithLogger(l *slog.Logger) Option {
	return setting{func(s *setup.Settings) { s.Logger = l }}
}
