package conformance

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/model"
	"github.com/quorate/quorate/internal/model/server"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/script"
)

// Config says what is tested, and for how long.
type Config struct {
	Client redis.UniversalClient
	// Advance lets d pass on the node's clock. Nil means that the clock is the
	// wall clock: then time is let pass by sleeping, which is done sparingly.
	Advance func(d time.Duration)
	// Sequences is the number of sequences, Steps the length of each (default
	// 40).
	Sequences, Steps int
	// Bucketed says that each name is in a bucket, as a server in cluster mode
	// asks for; else every third one is.
	Bucketed bool
	// Seed picks the sequences: a failure names the seed that brings it back
	// alone.
	Seed uint64
}

// timedOneIn is how many sequences on a wall clock there are to one that
// sleeps.
const timedOneIn = 25

// herdOneIn is how many sequences there are to one with so many claims that one
// request does not deal with all of them.
const herdOneIn = 20

// errNear abandons a sequence whose outcome depends on a millisecond more or
// less.
var errNear = errors.New("too near an expiry")

// large is a capacity that readers weigh 1 of, and writers all of.
const large = 1 << 30

const (
	retention = 5 * time.Minute
	ballot    = "19a0000000000000001" // of the node's set
)

// actor is one claim of the sequence, as its client would know it.
type actor struct {
	terms protocol.Terms
	owner string
	note  string // with a space before it
}

// sequence is one random history of one name, on a node of its own: its prefix
// gives it its own marker.
type sequence struct {
	cfg     Config
	pushes  *pushes
	rng     *rand.Rand
	server  *server.Server // the model, behind the bytes of commands
	outs    []model.Out    // what it has pushed
	data    *model.Name    // its data of the name
	keys    script.Keys
	prefix  string
	name    string
	guard   time.Duration
	count   bool // it is a semaphore's
	set     *nodeset.Configuration
	timed   bool // time is let pass
	slack   slack
	now     int64
	actors  []*actor
	resizes protocol.Ticket
	common  *actor // what one client's claims have in common, which go out together; nil: nothing
	herd    bool   // more claims than one request deals with
	done    int    // parts of requests of many that were done
	mixed   int    // requests of many in which two claims had something done
	log     history
}

func newSequence(cfg Config, p *pushes, seed uint64) *sequence {
	rng := rand.New(rand.NewPCG(seed, 1))
	s := &sequence{cfg: cfg, pushes: p, rng: rng, guard: 60 * time.Millisecond}
	s.timed = cfg.Advance != nil || seed%timedOneIn == 0
	s.prefix = fmt.Sprintf("conf%x-%x", seed, rng.Uint64())
	s.name = s.prefix + " name"
	s.server = server.New("run", s.publish)
	if s.server.Model.Bucketed = cfg.Bucketed || seed%3 == 2; s.server.Model.Bucketed {
		s.prefix = script.BucketPrefix(s.prefix, script.BucketOf(s.name))
	}
	stamp, shared := nodeset.StampOf(1, ballot), nodeset.Shared{Guard: s.guard, Retention: retention}
	s.set = &nodeset.Configuration{
		Stamp: stamp, Origin: stamp, Now: shared, Next: shared,
		Members: []nodeset.Member{{Identity: "me", Addr: "here"}},
	}
	s.keys = script.NewKeys(s.prefix, s.name).At(script.HomeOf(stamp))
	s.data = s.server.Model.Name(s.keys.State())
	capacity := []uint64{1, 1, 3, large}[rng.IntN(4)]
	s.count = capacity == 3 || capacity == 1 && rng.IntN(4) == 0
	fleet := 3 + rng.IntN(4)
	s.herd = seed%herdOneIn == 1
	switch rng.IntN(6) {
	case 0:
		fleet = 12 // more than a hint for a waiter looks at
	case 1, 2:
		fleet = 1 + rng.IntN(2) // often alone
	}
	if s.herd {
		fleet = model.Portion + rng.IntN(2*model.Portion)
		if capacity > 1 { // permits, or readers and writers
			capacity, s.count = large, rng.IntN(2) == 0
		}
		if s.count {
			fleet = 9 * model.Portion // too many for a list
		}
	}
	if rng.IntN(2) == 0 && !s.herd {
		s.common = &actor{}
		s.renew(s.common)
	}
	for i := range fleet {
		c := capacity
		if i == 0 && rng.IntN(6) == 0 {
			c = []uint64{1, 3}[rng.IntN(2)]
		}
		a := &actor{terms: protocol.Terms{Capacity: c, Weight: 1, Counting: s.count, Notify: rng.IntN(2) == 0}}
		switch {
		case c == large && rng.IntN(3) == 0:
			a.terms.Weight = large
		case c == 3:
			a.terms.Weight = 1 + rng.Uint64N(3)
		}
		if s.herd && c == large {
			a.terms.Weight = 1
			// All wait for the first, or the last waits for all.
			if i == 0 && seed%(2*herdOneIn) == 1 || i == fleet-2 {
				a.terms.Weight = large
			}
		}
		s.renew(a)
		s.actors = append(s.actors, a)
	}
	return s
}

// renew makes the actor another attempt: a fresh id, few residues so that they
// meet.
func (s *sequence) renew(a *actor) {
	binary.BigEndian.PutUint64(a.terms.ID[:], s.rng.Uint64())
	binary.BigEndian.PutUint64(a.terms.ID[8:], s.rng.Uint64())
	a.terms.ID[15] = a.terms.ID[15]&0xc0 | byte(s.rng.IntN(3))
	a.owner, a.note = s.pushes.owner(s.rng), ""
	if s.rng.IntN(3) == 0 && s.common == nil { // no claim with a note is sent with others
		a.note = " order 4711 (3 of 5)"
	}
	a.terms.TTL = 20 * time.Second
	if s.timed && s.rng.IntN(2) == 0 {
		a.terms.TTL = time.Duration(40+s.rng.IntN(40)) * time.Millisecond
	}
	if s.common != nil && a != s.common {
		a.owner, a.terms.TTL, a.terms.Notify = s.common.owner, s.common.terms.TTL, true
	}
}

// beside is the key of the record that says how many permits there are.
func (s *sequence) beside() string {
	return script.NewKeysBeside(s.prefix, s.name, script.Number).Record()
}

// ticket is one worth asking for: around the fence, on it, or another claim's.
func (s *sequence) ticket(a *actor) protocol.Ticket {
	clock := protocol.Ticket(s.now) * 1000
	fence := max(s.data.Fence(), clock)
	claims := s.data.Claims(s.now)
	if s.rng.IntN(20) == 0 { // no node gives that
		return s.ahead(clock)
	}
	switch k := s.rng.IntN(10); {
	case k == 0:
		return fence
	case k < 3 && len(claims) > 0:
		return claims[s.rng.IntN(len(claims))].Ticket
	case k < 6:
		return a.terms.ID.Next(fence)
	default:
		return a.terms.ID.Next(fence - 200 + protocol.Ticket(s.rng.IntN(300)))
	}
}

// leave mostly has the ticket that the claim has, as that of a client. Then the
// scripts take the short way. Any other way the node must come to the same.
func (s *sequence) leave(id protocol.ID) protocol.Request {
	r := protocol.Request{Op: protocol.OpLeave}
	if s.rng.IntN(4) == 0 { // it may have left already
		r.Ticket = s.data.Fence()
	}
	for _, c := range s.data.Claims(s.now) {
		if c.ID == id && s.rng.IntN(4) > 0 {
			r.Ticket = c.Ticket
		}
	}
	return r
}

// ahead is a ticket that is too far ahead of the node's clock, at times by more
// than any clock can be.
func (s *sequence) ahead(clock protocol.Ticket) protocol.Ticket {
	switch s.rng.IntN(4) {
	case 0:
		return protocol.MaxTicket - 1 - protocol.Ticket(s.rng.IntN(100))
	case 1:
		return clock + protocol.Ticket((49 * time.Hour).Microseconds())
	default: // well above the slack of a wall clock
		return clock + protocol.Ticket((10*s.guard + time.Minute).Microseconds()) + protocol.Ticket(s.rng.IntN(100))
	}
}

// history are lines that explain a failure.
type history []string

func (h *history) note(format string, args ...any) {
	*h = append(*h, fmt.Sprintf(format, args...))
}

func (h history) String() string { return "  " + strings.Join(h, "\n  ") }
