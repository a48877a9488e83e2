package period

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
)

// State is the progress of a run.
type State string

// The states of a run.
const (
	// Began ("began"): the run is in progress, or its process died.
	Began State = "began"
	// Done ("done"): the function has returned nil.
	Done State = "done"
	// Failed ("failed"): the function has returned an error.
	Failed State = "failed"
)

// String returns the string listed with the state.
func (s State) String() string { return string(s) }

// A Run is a run as recorded by a majority of the nodes.
type Run struct {
	Start time.Time     // start of its period in UTC, by the nodes' clocks; zero if there has been no run
	Token uint64        // the fencing token
	State State         // its progress
	Left  time.Duration // Began: time left on the lease unless it is renewed; 0 if it has expired
}

// record is a Run as the nodes keep it.
type record struct {
	Version int    `json:"period"` // of this format
	Start   int64  `json:"start"`  // Unix microseconds
	Token   uint64 `json:"token"`
	State   State  `json:"state"`
}

// format is the Version that is written.
const format = 1

func (r Run) encode() []byte {
	text, _ := json.Marshal(record{ // cannot fail
		Version: format, Start: r.Start.UnixMicro(), Token: r.Token, State: r.State,
	})
	return text
}

// read reads a record.
func read(rec core.Record) (Run, error) {
	if !rec.Exists {
		return Run{}, nil
	}
	var r record
	if err := json.Unmarshal(rec.Value, &r); err != nil || r.Version != format {
		return Run{}, fmt.Errorf("%w: this name is in use by another primitive, or by a newer version; "+
			"choose another name", fault.ErrInvalid)
	}
	last := Run{Start: time.UnixMicro(r.Start).UTC(), Token: r.Token, State: r.State}
	if r.State == Began {
		last.Left = rec.Left
	}
	return last, nil
}

// decided is read for a caller that wants to know what the latest run is. While
// the record is undecided, it may be either of two.
func decided(rec core.Record) (Run, error) {
	if rec.Undecided {
		return Run{}, fmt.Errorf("%w: another process is deciding whether the latest run is recorded; ask again",
			fault.ErrHeld)
	}
	return read(rec)
}

// Last asks the nodes for the latest run, which may belong to an earlier
// period. It returns [quorate.ErrNoQuorum] if too few nodes answer before ctx
// ends, and [quorate.ErrHeld] while another process, whose run is about to
// begin, decides whether an interrupted run was recorded. The answer may be out
// of date by the time it arrives.
func (p *Period) Last(ctx context.Context) (Run, error) {
	if err := p.usable(); err != nil {
		return Run{}, core.WrapError("last", p.spec.Name, err)
	}
	rec, err := p.reg.Read(ctx)
	if err != nil {
		return Run{}, core.WrapError("last", p.spec.Name, err)
	}
	last, err := decided(rec)
	return last, core.WrapError("last", p.spec.Name, err)
}
