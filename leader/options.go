package leader

import (
	"crypto/rand"
	"fmt"
	"os"
	"unicode/utf8"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/setup"
)

// settings are what the options set: those of every primitive, and our own.
type settings struct {
	*setup.Settings
	id, value string
	oneTerm   bool
	named     bool // WithID was given
	ranked    bool // WithPriority was given
	priority  int
}

// Limits, in bytes. Every node stores both, and every observer gets them.
const (
	MaxID    = 1 << 10  // maximum size of a participant's ID
	MaxValue = 64 << 10 // maximum size of a leader's value
)

// apply returns the Quorum's settings as the options change them. It panics
// when they are wrong.
func apply(q *core.Quorum, opts []quorate.LeaderOption) settings {
	set := settings{Settings: core.Override(q, "leader.New", opts)}
	for _, o := range opts {
		if o, ok := o.(own); ok {
			o.set(&set)
		}
	}
	if set.named = set.id != ""; !set.named {
		set.id = fmt.Sprintf("%s:%d:%s", script.Hostname(), os.Getpid(), rand.Text()[:8])
	}
	return set
}

// check says what is wrong with the id or the value. They may come from a
// configuration, so they are no reason to panic.
func (s *settings) check() error {
	switch {
	case len(s.id) > MaxID:
		return fmt.Errorf("%w: the id is %d bytes long; at most %d are allowed", fault.ErrInvalid, len(s.id), MaxID)
	case !utf8.ValidString(s.id):
		return fmt.Errorf("%w: the id %q is not UTF-8", fault.ErrInvalid, s.id)
	}
	if s.ranked && setup.CheckNote(s.id) != nil {
		return fmt.Errorf("%w: with WithPriority, the id %.250q must have at most 200 bytes, all printable",
			fault.ErrInvalid, s.id)
	}
	return checkValue(s.value)
}

// candidate returns what the claims of this participant show. It is empty if
// the participant has neither an ID of its own nor a priority, or if the ID
// does not fit on a line.
func (s *settings) candidate() string {
	if !s.named && !s.ranked || setup.CheckNote(s.id) != nil {
		return ""
	}
	return script.Candidate(s.id, s.priority)
}

func checkValue(value string) error {
	switch {
	case len(value) > MaxValue:
		return fmt.Errorf("%w: the value is %d bytes long; at most %d are allowed: store a reference instead",
			fault.ErrInvalid, len(value), MaxValue)
	case !utf8.ValidString(value):
		return fmt.Errorf("%w: the value is not UTF-8; encode it", fault.ErrInvalid)
	}
	return nil
}

// own is an option that only this package understands.
type own struct {
	quorate.LeaderOption // nil: it makes the type an option of New, and has no other use
	set                  func(*settings)
}

// Apply leaves the settings of other primitives unchanged; see apply.
func (own) Apply(*setup.Settings) {}

// WithID sets the ID that others see while this participant is the leader. It
// has no effect on the election, and participants may share an ID. The default
// consists of the host, the process and a random part. The ID must be UTF-8 and
// at most [MaxID] bytes long.
//
// [Election.TransferTo] finds participants with this option by their ID, if that
// has at most 200 bytes, all printable. Give it to all participants: those with
// neither this option nor [WithPriority] let no other one go first. A
// participant that others wait behind reads the record once before it leads, to
// see whether one of them should, which takes a round trip.
func WithID(id string) quorate.LeaderOption {
	return own{set: func(s *settings) { s.id = id }}
}

// WithValue sets the value, such as an address, that others see once
// [Election.Run] has won. [Election.Proclaim] replaces it for the rest of the
// term. The default is "". The value must be UTF-8 and at most [MaxValue] bytes
// long.
func WithValue(value string) quorate.LeaderOption {
	return own{set: func(s *settings) { s.value = value }}
}

// WithPriority sets the priority of this participant. It counts only when a
// leader with this option hands over: when [Election.Resign] or
// [Election.Run] ends a term, the waiting candidate with the highest priority
// leads next. For that the leader reads the queue first, if it knows that a
// candidate is waiting. The candidates need WithPriority or [WithID]; without
// WithPriority the priority is 0. A leader that dies or loses its term hands
// over to nobody, so the next in line leads. Priorities never end a term: see
// [Election.Outranked]. With this option the ID must have at most 200 bytes, all
// printable, so that others can see it.
func WithPriority(n int) quorate.LeaderOption {
	return own{set: func(s *settings) { s.priority, s.ranked = n, true }}
}

// WithOneTerm makes [Election.Run] return at the end of the first term. By
// default Run campaigns again.
func WithOneTerm() quorate.LeaderOption {
	return own{set: func(s *settings) { s.oneTerm = true }}
}
