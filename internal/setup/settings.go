// Package setup holds the settings of a Quorum. It keeps no state of a running
// Quorum.
//
//	settings.go  settings, defaults and bounds, names, events, what a tracer gets
//	address.go   where a node is: a server, a Sentinel set, a cluster
//	url.go       parsing of addresses
//	clients.go   which client is used for an address
package setup

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/transport"
)

// Settings are what the options of the root package set. They do not change
// once a Quorum or a primitive has them, so they need no lock.
type Settings struct {
	TTL           time.Duration
	Skew          time.Duration
	Guard         time.Duration
	GuardGiven    bool // set by an option: a set with a shorter guard time is refused
	NodeTimeout   time.Duration
	MaxHold       time.Duration // 0: no bound
	Linger        time.Duration
	WarnBefore    time.Duration   // Warn is called when this much of a lease is left
	Warn          func(lease any) // gets a *core.Lease; nil: no warning
	Retention     time.Duration
	Prefix        string
	NoRenewal     bool
	MinimalFanout bool // behave as under load; see lease.Fanout; for tests
	// Makes a node's transport; nil: [transport.NewOrdered]. For tests.
	Connect     Connector
	Prepare     func(*redis.Options) error // changes each address's options; may be nil. For the command
	Label       string                     // of this process, shown to observers; may be empty
	Logger      *slog.Logger
	Observe     func(Event) // nil: none
	Trace       Tracer      // nil: none
	Names       []string    // of the nodes, as the set records them; empty: their addresses
	Development bool        // ForDevelopment was given; needs a single node
	LooksOnly   bool        // blank nodes do not record a set because of this client. For the command
	Base        string      // of a bucket: the prefix without the bucket, otherwise empty. Not an option
}

// First reports whether these are the settings of the first bucket, or of a
// Quorum without buckets. Only the first bucket logs what is the same for all
// buckets.
func (s *Settings) First() bool {
	return s.Base == "" || s.Prefix == script.BucketPrefix(s.Base, 0)
}

// A Connector makes the transport to the node of client.
type Connector func(client redis.UniversalClient, cfg transport.Config) (transport.Transport, error)

// NewTransport makes the transport to the node of client.
func (s *Settings) NewTransport(client redis.UniversalClient, cfg transport.Config) (
	transport.Transport, error,
) {
	if s.Connect != nil {
		return s.Connect(client, cfg)
	}
	if t := InProcess(client, cfg); t != nil {
		return t, nil
	}
	return transport.NewOrdered(client, cfg)
}

// PrepareAll calls Prepare with the options of each address. Its error matches
// ErrInvalid. Every list that comes from outside passes through it: Connect's,
// and the nodes of an exchange.
func (s *Settings) PrepareAll(all []Address) error {
	if s.Prepare == nil {
		return nil
	}
	for i, a := range all {
		if err := a.Prepare(s.Prepare); err != nil {
			return fmt.Errorf("%w: node %d: %w", fault.ErrInvalid, i+1, err)
		}
	}
	return nil
}

// Defaults returns the settings that apply without options.
func Defaults() Settings {
	return Settings{
		// With 8 s, a holder survives two lost renewals in a row, and a dead
		// holder blocks others for no longer than that. The guard time is the
		// minimum for this TTL and skew. The skew is what NTP achieves on a
		// healthy machine.
		TTL:         8 * time.Second,
		Skew:        2 * time.Second,
		Guard:       20 * time.Second,
		NodeTimeout: 200 * time.Millisecond,
		Retention:   5 * time.Minute,
		Prefix:      "quorate",
		Logger:      slog.Default(),
	}
}

// The settings of the development mode. A single node's clock is compared with
// no other clock, so the skew does not matter, and the guard time is twice the
// TTL.
const (
	DevelopmentTTL   = time.Second
	DevelopmentGuard = 2 * DevelopmentTTL
)

// ForDevelopment changes the settings to those of the development mode.
func (s *Settings) ForDevelopment() {
	s.Development, s.TTL, s.Skew, s.Guard = true, DevelopmentTTL, 0, DevelopmentGuard
}

// IsDevelopment reports whether a recorded set has the settings of the
// development mode.
func IsDevelopment(guard, skew time.Duration, nodes int) bool {
	return guard == DevelopmentGuard && skew == 0 && nodes == 1
}

// Check returns an error for the first invalid setting, with a remedy.
func (s *Settings) Check() error {
	switch {
	// Each message says what would go wrong and gives a valid value: it is
	// often the first text that a user reads.
	case s.TTL < 10*time.Millisecond:
		return fmt.Errorf("WithTTL(%v): must be at least 10ms, to survive a round trip; choose seconds (a number "+
			"without a unit counts nanoseconds)", s.TTL)
	case s.TTL%time.Millisecond != 0:
		return fmt.Errorf("WithTTL(%v): must be a whole number of milliseconds", s.TTL)
	case s.TTL > 24*time.Hour:
		return fmt.Errorf("WithTTL(%v): at most 24h; leases are renewed while you hold the lock, so a short one "+
			"is enough", s.TTL)
	case s.Skew < 0:
		return fmt.Errorf("WithSkew(%v): cannot be negative", s.Skew)
	case s.Skew > MostSkew:
		return fmt.Errorf("WithSkew(%v): at most 24h; correct clocks that differ by more", s.Skew)
	case s.Skew%time.Millisecond != 0:
		return fmt.Errorf("WithSkew(%v): must be a whole number of milliseconds, such as %v", s.Skew, up(s.Skew))
	case s.Guard > MostGuard:
		return fmt.Errorf("WithGuard(%v): must be at most 720h, because a restarted node does not vote before it "+
			"has passed", s.Guard)
	case s.Guard < 2*s.TTL+2*s.Skew:
		return fmt.Errorf("WithGuard(%v) is below 2*ttl + 2*skew = %v: a restarted node could vote while a lease "+
			"that it forgot is still running; choose WithGuard(%[2]v) or more, the same in all clients, or a shorter "+
			"WithTTL (now %v) or WithSkew (now %v)",
			s.Guard, 2*s.TTL+2*s.Skew, s.TTL, s.Skew)
	case s.Guard%time.Millisecond != 0:
		return fmt.Errorf("WithGuard(%v): must be a whole number of milliseconds, such as %v", s.Guard, up(s.Guard))
	case s.NodeTimeout <= 0:
		return fmt.Errorf("WithNodeTimeout(%v): must be positive", s.NodeTimeout)
	case s.NodeTimeout < time.Millisecond:
		return fmt.Errorf("WithNodeTimeout(%v): no node answers within less than 1ms; a number without a unit "+
			"counts nanoseconds: write %[2]d*time.Millisecond", s.NodeTimeout, int64(s.NodeTimeout))
	case s.NodeTimeout > s.TTL/4:
		return fmt.Errorf("WithNodeTimeout(%v) is above a quarter of the TTL (%v), so a failed renewal could not "+
			"be retried in time; choose at most %v", s.NodeTimeout, s.TTL, s.TTL/4)
	case s.MaxHold < 0:
		return fmt.Errorf("WithMaxHold(%v): cannot be negative; 0 means no limit", s.MaxHold)
	case s.Warn != nil && (s.WarnBefore <= 0 || s.WarnBefore > s.TTL/2):
		return fmt.Errorf("WithWarning(%v): must be above 0 and at most half of the TTL (%v); a longer one would "+
			"warn before each renewal", s.WarnBefore, s.TTL)
	case s.Linger < 0:
		return fmt.Errorf("WithLinger(%v): cannot be negative; 0 means none", s.Linger)
	case s.Retention > MostRetention:
		return fmt.Errorf("WithRetention(%v): at most 87600h", s.Retention)
	case s.Retention < s.Guard:
		return fmt.Errorf("WithRetention(%v) is below the guard time %v: choose at least the guard time",
			s.Retention, s.Guard)
	case s.Retention%time.Millisecond != 0:
		return fmt.Errorf("WithRetention(%v): must be a whole number of milliseconds, such as %v", s.Retention,
			up(s.Retention))
	case s.Base == "" && (s.Prefix == "" || strings.ContainsAny(s.Prefix, "{} \t\n\v\f\r")):
		return fmt.Errorf("WithPrefix(%q): must not be empty, or contain braces or white space", s.Prefix)
	case len(s.Prefix) > 1024:
		return fmt.Errorf("WithPrefix(%.70q…): at most 1024 bytes", s.Prefix)
	case len(s.Label) > 64 || strings.ContainsFunc(s.Label, func(r rune) bool {
		return r <= ' ' ||
			r > '~' || r == ':'
	}):
		return fmt.Errorf("WithOwner(%.70q): at most 64 printable ASCII characters, without spaces or colons",
			s.Label)
	}
	return nil
}

// Upper bounds for the settings that all clients of a set share.
const (
	MostGuard     = 720 * time.Hour
	MostSkew      = 24 * time.Hour
	MostRetention = 87600 * time.Hour
)

// up rounds d up to whole milliseconds.
func up(d time.Duration) time.Duration { return (d + time.Millisecond - 1).Truncate(time.Millisecond) }

// A Setting is the effect of one option.
type Setting func(*Settings)

func (f Setting) Apply(s *Settings) { f(s) }

// Apply applies options to s. It fails for a nil option, and for a type that a
// caller made by embedding an option's interface.
func Apply[O any](s *Settings, opts []O) error {
	for i, o := range opts {
		switch o := any(o).(type) {
		case nil:
			return fmt.Errorf("%w: option %d is nil; remove it", fault.ErrInvalid, i)
		case interface{ Apply(*Settings) }:
			o.Apply(s)
		default:
			return fmt.Errorf("%w: option %d, a %T, was not made by this library", fault.ErrInvalid, i, o)
		}
	}
	return nil
}

// MaxName is the longest name in bytes. The name is part of five keys.
const MaxName = 1024

// CheckName returns an error if name cannot be the name of a primitive. It also
// checks names that nodes list, because another program may have made such a
// key (repairName).
func CheckName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: the name is empty", fault.ErrInvalid)
	case len(name) > MaxName:
		return fmt.Errorf("%w: the name is %d bytes long; at most %d are allowed: hash it",
			fault.ErrInvalid, len(name), MaxName)
	// For other Redlock clients the name itself is a key. Each of our own keys
	// contains a brace, so a name without braces never collides with one of
	// them.
	case strings.ContainsAny(name, "{}"):
		return fmt.Errorf("%w: the name %.200q contains a brace, which has a special meaning in Redis keys; "+
			"choose another separator", fault.ErrInvalid, name)
	}
	return nil
}

// EventKind says what happened.
type EventKind string

const (
	EventLost           EventKind = "lost"
	EventBareHold       EventKind = "bare hold"
	EventNodeUp         EventKind = "node up"
	EventNodeDown       EventKind = "node down"
	EventNodeLeft       EventKind = "node left"
	EventNodeRecovering EventKind = "node recovering"
	EventNodeCaughtUp   EventKind = "node caught up"
	EventNodeRefuses    EventKind = "node refuses"
	EventNodeAccepts    EventKind = "node accepts"
	EventWaiting        EventKind = "recovering"
	EventClockJumped    EventKind = "clock jumped"
	EventSetChanged     EventKind = "set changed"
)

// Event is something that an observer may count. No decision of the library
// depends on an event.
type Event struct {
	Kind  EventKind
	Name  string        // the primitive's name; empty for node events
	Token uint64        // of the hold
	Node  string        // address, for node events
	Took  time.Duration // how long the hold lasted, or how much of the lease or guard time is left
	Err   error
}

// InProcess returns the transport to a node that lives inside this process, for
// tests, and nil for any other node. It is set before the first Quorum is made.
var InProcess = func(redis.UniversalClient, transport.Config) transport.Transport { return nil }

// Tracer is how core reports acquisitions and holds to the application's
// tracer.
type Tracer interface {
	AcquireStart(ctx context.Context, i AcquireInfo) context.Context
	AcquireEnd(ctx context.Context, r AcquireResult)
	HoldEnd(ctx context.Context, r HoldResult)
}

// AcquireInfo describes an acquisition that begins.
type AcquireInfo struct {
	Kind, Name string
	Try        bool
}

// AcquireResult describes how an acquisition ended.
type AcquireResult struct {
	Kind, Name                    string
	Try, Contended, Local, Shared bool
	Wait                          time.Duration
	Queue, RoundTrips, Votes      int
	Token                         uint64
	Err                           error
}

// HoldResult describes how a hold ended.
type HoldResult struct {
	Kind, Name string
	Token      uint64
	Held       time.Duration
	Err        error
}
