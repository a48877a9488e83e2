package once

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
)

// Codec encodes the values that processes share. Unmarshal gets a pointer to
// what Marshal was given.
type Codec interface {
	Marshal(v any) ([]byte, error)
	Unmarshal(data []byte, v any) error
}

// jsonCodec is encoding/json.
type jsonCodec struct{}

func (jsonCodec) Marshal(v any) ([]byte, error)      { return json.Marshal(v) }
func (jsonCodec) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }

// settings are what the options set: those of every primitive, and our own.
type settings struct {
	*core.Settings
	keep    time.Duration // 0: for ever
	durable bool
	codec   Codec
}

// apply returns the Quorum's settings as the options change them. It panics
// when they are wrong.
func apply(q *core.Quorum, opts []quorate.Option) settings {
	set := settings{codec: jsonCodec{}}
	first := func(s *core.Settings) { s.Own = &set }
	set.Settings = core.Override(q, "once.New", append([]quorate.Option{first}, opts...))
	switch {
	case set.keep < 0:
		panic(fmt.Sprintf("quorate: once.New: KeepFor(%v): cannot be negative; 0 means for ever", set.keep))
	case set.keep > 0 && set.keep < set.Retention:
		panic(fmt.Sprintf("quorate: once.New: KeepFor(%v) is below the retention of %v: a run that comes late could record over one that is forgotten; choose at least that", set.keep, set.Retention))
	case set.keep%time.Millisecond != 0:
		panic(fmt.Sprintf("quorate: once.New: KeepFor(%v): Redis counts in milliseconds; choose a whole number of them", set.keep))
	case set.codec == nil:
		panic("quorate: once.New: WithCodec(nil): leave it away for encoding/json")
	}
	return set
}

// own makes an option of this package.
func own(name string, f func(*settings)) quorate.Option {
	return func(s *core.Settings) {
		set, ok := s.Own.(*settings)
		if !ok {
			panic("quorate: once." + name + " is an option of package once only")
		}
		f(set)
	}
}

// KeepFor sets how long the nodes remember that the work is done: after that
// it is done again when somebody asks, and what a process knows ends then too,
// by its wall clock. At least the retention (quorate.WithRetention, 5 min), in
// whole milliseconds. Default 0: for ever.
func KeepFor(d time.Duration) quorate.Option {
	return own("KeepFor", func(s *settings) { s.keep = d })
}

// WithDurable makes sure, before the work is run, that a majority of the nodes
// keeps an append-only file that is flushed every second or always: that the
// record will be there after all of them have been restarted. If not, the call
// fails with ErrNotDurable and says which node lacks what; or with
// quorate.ErrNoQuorum, when so many nodes cannot be asked that this is not
// known, through which Do waits. (Snapshots alone do not suffice: the next may
// be an hour away.)
//
// With appendfsync everysec a node that loses its power may lose the last
// second; the record is lost only if so many do within the second after it was
// made that no majority is left.
func WithDurable() quorate.Option {
	return own("WithDurable", func(s *settings) { s.durable = true })
}

// WithCodec sets how Value, Values and ValueContext encode values; all who use
// the name must agree. Default encoding/json.
func WithCodec(c Codec) quorate.Option {
	return own("WithCodec", func(s *settings) { s.codec = c })
}
