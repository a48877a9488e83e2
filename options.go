package quorate

import (
	"log/slog"
	"time"

	"github.com/quorate/quorate/internal/core"
)

// Option is a setting. New and Connect take options as defaults for all that
// is made from the Quorum; each primitive's New takes them as overrides, except
// those that concern the connections (said at each).
type Option func(*core.Settings)

// WithTTL sets how long a lease lasts unless renewed: how long a name stays
// taken after its holder has died. It is renewed every third of it. Default 8 s;
// at least 10 ms, in whole milliseconds, and within the guard time:
// guard >= 2*ttl + 2*skew.
func WithTTL(d time.Duration) Option { return func(s *core.Settings) { s.TTL = d } }

// WithGuard sets how long a node that lost its memory keeps from voting, so
// that every lease it may have forgotten has ended. It must be at least
// 2*ttl + 2*skew (protocol.md, "Restarted nodes"), and the same for all clients
// of the nodes: a node uses the longest that clients have shown to it, but
// forgets that with its memory. Default 20 s. For New and Connect only.
func WithGuard(d time.Duration) Option { return func(s *core.Settings) { s.Guard = d } }

// WithSkew sets the largest tolerated difference between the wall clocks of clients
// and nodes. A client that a majority of the nodes contradicts by more gets
// [ErrClock] for each claim. Tokens rise whatever the clocks show, and no lease
// depends on them. Default 2 s, at most 24 h. For New and Connect only.
func WithSkew(d time.Duration) Option { return func(s *core.Settings) { s.Skew = d } }

// WithNodeTimeout sets how long an answer of one node is waited for where it is
// needed. A node that is not needed for a majority is never waited for. One whose
// round trip is longer than half of it is given two round trips, at most ttl/4.
// Default 200 ms; at least 1 ms, at most ttl/4.
func WithNodeTimeout(d time.Duration) Option {
	return func(s *core.Settings) { s.NodeTimeout = d }
}

// WithRetention sets how long a node remembers the last ticket of a name that
// nobody claims any more, so that tokens keep rising. A node uses the longest
// that clients have shown to it. Default 5 min; at least the guard time. For New
// and Connect only.
func WithRetention(d time.Duration) Option { return func(s *core.Settings) { s.Retention = d } }

// WithPrefix sets the prefix of the keys that the library keeps for itself.
// The plain key of a mutex is the name as given, whatever the prefix: that is
// where other Redlock clients look. Default "quorate". For New and Connect only.
func WithPrefix(p string) Option { return func(s *core.Settings) { s.Prefix = p } }

// WithMaxHold stops the renewal of a hold d after it began, so that a holder
// that is stuck loses it, at the latest d + ttl after it began. Default 0: no
// bound.
func WithMaxHold(d time.Duration) Option { return func(s *core.Settings) { s.MaxHold = d } }

// WithoutRenewal lets a hold end one ttl after it began, unless Extend is called.
func WithoutRenewal() Option { return func(s *core.Settings) { s.NoRenewal = true } }

// WithLinger keeps a mutex's claim for d after the last Unlock, so that the next
// Lock of this process costs no round trip. It is given up at once when
// somebody else asks. Default 0: given up at Unlock.
func WithLinger(d time.Duration) Option { return func(s *core.Settings) { s.Linger = d } }

// WithLogger sets where the few things worth telling go: nodes that come and
// go, waiting for the guard time, a lost hold. Default slog.Default().
// For New and Connect only.
func WithLogger(l *slog.Logger) Option { return func(s *core.Settings) { s.Logger = l } }

// WithObserver sets who is told of acquisitions, releases, losses and nodes.
// For New and Connect only.
func WithObserver(o Observer) Option {
	return func(s *core.Settings) {
		if s.Observe = nil; o != nil {
			s.Observe = func(e core.Event) {
				o.Observe(Event{Kind: EventKind(e.Kind), Name: e.Name, Token: e.Token, Node: e.Node, Took: e.Took, Err: e.Err})
			}
		}
	}
}

// Observer is told what happens, for metrics and tests. Observe is called from
// the goroutine where it happened: it must return soon and may not call back. If
// it panics in a goroutine of the caller, as in Lock or Unlock, the panic is the
// caller's: Lock then has not locked, and Unlock has unlocked. In a goroutine of
// the library a panic ends the process.
type Observer interface{ Observe(Event) }

// EventKind says what happened.
type EventKind string

// The kinds of events.
const (
	EventAcquired    = EventKind(core.EventAcquired)
	EventReleased    = EventKind(core.EventReleased)
	EventLost        = EventKind(core.EventLost)
	EventNodeUp      = EventKind(core.EventNodeUp)
	EventNodeDown    = EventKind(core.EventNodeDown)
	EventClockJumped = EventKind(core.EventClockJumped) // Took says by how much; the node sits out its guard time
	EventRecovering  = EventKind(core.EventWaiting)     // so many nodes sit out their guard time that there is no quorum
)

// Event is one thing that happened.
type Event struct {
	Kind  EventKind
	Name  string        // of the primitive; empty for events of nodes
	Token uint64        // of the claim, for acquired, released and lost
	Node  string        // its address, for events of nodes
	Took  time.Duration // acquired: since the call; released, lost: the hold's length; recovering: how much longer; clock jumped: by how much
	Err   error         // lost and node down: why; of lost an *Error with what each node has said
}
