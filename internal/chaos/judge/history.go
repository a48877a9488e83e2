package judge

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/chaos/record"
)

// Violation is something that must not be.
type Violation struct {
	At   int64 // of record.Now; 0 where there is no one moment
	What string
	Ops  []*Operation
	Live bool // it says that something came late, or not at all
	Key  bool // a key that is left: not a fault where a client has told that its last word did not arrive
}

// Work is one kind of what clients do.
type Work struct {
	Kind     string
	Names    []string
	Capacity int64 // of each: holds that are valid together never weigh more
}

// Operation is what a client asked for and what came of it, as its log tells.
// Times are of record.Now; 0 where something has not happened.
type Operation struct {
	Op, Kind, Name string
	After          string // the operation whose hold this one goes on with
	Shrunk         bool   // another goes on with this one's
	Weight         int64
	Phase          Phase // in which it was called
	Call           int64
	Failed         int64
	Err            string
	Begin          int64 // Lock has returned
	Token          uint64
	Until          int64 // ValidUntil as last written down
	Seen           int64 // when it was last seen to be valid, as written down at its end
	End            int64 // Unlock was about to be called, or the loss was seen
	Lost           bool
	Round          string // of once: which piece of work it was about
	Value          string // of once: what it got
	Done           int64  // of a run for once: when it had been carried out
}

func (o *Operation) String() string {
	return fmt.Sprintf("%s %s weight %d token %d: called %s, held from %s until %s (validity %s, lost %t)", o.Op, o.Name, o.Weight, o.Token,
		record.Seconds(o.Call), record.Seconds(o.Begin), record.Seconds(o.valid()), record.Seconds(o.Until), o.Lost)
}

// held says whether there is an interval in which the client held it. There is
// none if it was stopped between the admission and looking at the clock.
func (o *Operation) held() bool { return o.Begin > 0 && o.valid() > o.Begin }

// life is the client's life that the operation is of: the prefix of its name.
func (o *Operation) life() string { return o.Op[:max(0, strings.LastIndexByte(o.Op, '.'))] }

// claim tells the claims of one name apart: a token is a claim's ticket and
// which of its holders it is, below 2^10.
func (o *Operation) claim() uint64 { return o.Token >> 10 }

// valid is the end of that interval. A hold that is lost before its time,
// because a node has forgotten it, has no ValidUntil any more: then it is the
// last moment at which it had one.
func (o *Operation) valid() int64 {
	if o.End > 0 {
		return max(min(o.End, o.Until), o.Seen)
	}
	return o.Until
}

// Sighting is the answer that a client got when it asked for the leader, or
// whether something is done: the token of the leader or of the run, 0 for none.
type Sighting struct {
	By, Kind, Name string
	From, To       int64
	Token          uint64
	Words          string // the whole answer
}

// Phase is a part of a run.
type Phase int

const (
	UnderFaults Phase = iota
	AfterFaults       // faults are over, and what they have left behind still may be there
	AllWell
)

// Phases are the moments when the second and the third of them began.
type Phases struct{ FaultsOver, Well, Ended int64 }

func (p Phases) of(at int64) Phase {
	switch {
	case at >= p.Well:
		return AllWell
	case at >= p.FaultsOver:
		return AfterFaults
	default:
		return UnderFaults
	}
}

// History is all that the clients have written down.
type History struct {
	Ops      []*Operation // in the order of their calls
	ByOp     map[string]*Operation
	Told     []Sighting
	Lives    int // of clients
	Late     int // clients that closed without every node's word
	Troubles []string
}

// loadHistory reads the logs in a directory. The last line of a client that was
// killed may be half there.
func loadHistory(dir string, ps Phases) (*History, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		return nil, err
	}
	h := &History{Lives: len(files), ByOp: map[string]*Operation{}}
	for _, f := range files {
		if err := h.load(f); err != nil {
			return nil, err
		}
	}
	for _, o := range h.Ops {
		o.Phase = ps.of(o.Call)
	}
	slices.SortFunc(h.Ops, func(a, b *Operation) int { return cmp.Compare(a.Call, b.Call) })
	return h, nil
}

func (h *History) load(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<24) // stacks may be in it
	for s.Scan() {
		var e record.Event
		if err := json.Unmarshal(s.Bytes(), &e); err != nil {
			if s.Scan() {
				return fmt.Errorf("%s: %w", path, err)
			}
			return s.Err()
		}
		switch e.E {
		case record.EvCall:
			o := &Operation{Op: e.Op, Kind: e.Kind, Name: e.Name, Weight: e.Weight, After: e.After, Round: e.Round, Call: e.T}
			if before := h.ByOp[e.After]; before != nil {
				before.Shrunk = true
			}
			h.ByOp[e.Op] = o
			h.Ops = append(h.Ops, o)
			continue
		case record.EvError:
			h.Troubles = append(h.Troubles, fmt.Sprintf("%s at %s: %s", strings.TrimSuffix(filepath.Base(path), ".log"), record.Seconds(e.T), e.Err))
			continue
		case record.EvLate:
			h.Late++
			continue
		case record.EvTold:
			by := strings.TrimSuffix(filepath.Base(path), ".log")
			h.Told = append(h.Told, Sighting{By: by, Kind: e.Kind, Name: e.Name, From: e.From, To: e.T, Token: e.Token, Words: e.Value})
			continue
		}
		o := h.ByOp[e.Op]
		if o == nil {
			return fmt.Errorf("%s: %s of an operation that was never called: %s", path, e.E, e.Op)
		}
		o.note(e)
	}
	return s.Err()
}

func (o *Operation) note(e record.Event) {
	switch e.E {
	case record.EvFail:
		o.Failed, o.Err = e.T, e.Err
	case record.EvBegin:
		o.Begin, o.Token, o.Until, o.Value = e.T, e.Token, e.Until, e.Value
	case record.EvDone:
		o.Done = e.T
	case record.EvUntil:
		o.Until = e.Until
	case record.EvEnd:
		if o.End == 0 {
			o.End, o.Until, o.Seen, o.Lost = e.T, e.Until, e.Seen, e.Lost
		}
	}
}

// ours are the holds of the library's clients, of each name.
func (h *History) ours() map[string][]*Operation {
	return h.by(func(o *Operation) bool { return o.Begin > 0 && o.Kind != record.Rival })
}

// by sorts the operations into those of each name.
func (h *History) by(keep func(*Operation) bool) map[string][]*Operation {
	all := map[string][]*Operation{}
	for _, o := range h.Ops {
		if keep(o) {
			all[o.Name] = append(all[o.Name], o)
		}
	}
	return all
}
