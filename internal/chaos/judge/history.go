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

// Violation is something that must not happen.
type Violation struct {
	At   int64 // a time of record.Now; 0 if there is no single moment
	What string
	Ops  []*Operation
	Live bool // a violation of liveness: something came late or not at all
	Key  bool // a leftover key: not a fault if a client has reported that its last release was not confirmed
}

// Work is one kind of work of the clients.
type Work struct {
	Kind     string
	Names    []string
	Capacity int64 // of each name: the weights of simultaneous valid holds never exceed it
}

// Operation is one call of a client and its result, as read from the log. Times
// are those of record.Now; 0 means that the event has not happened.
type Operation struct {
	Op, Kind, Name string
	After          string // the operation whose hold this one takes over
	Shrunk         bool   // another operation has taken over this one's hold
	Weight         int64
	Phase          Phase // the phase in which it was called
	Call           int64
	Failed         int64
	Err            string
	Begin          int64 // Lock has returned
	Token          uint64
	Until          int64 // the last logged ValidUntil
	Seen           int64 // when it was last seen valid, as logged at its end
	End            int64 // Unlock was about to be called, or the loss was seen
	Lost           bool
	Round          string // for once: the round
	Value          string // for once: the value that it got
	Done           int64  // for a run of once: when the function had returned
}

func (o *Operation) String() string {
	return fmt.Sprintf("%s %s weight %d token %d: called %s, held from %s until %s (validity %s, lost %t)",
		o.Op, o.Name, o.Weight, o.Token,
		record.Seconds(o.Call), record.Seconds(o.Begin), record.Seconds(o.valid()),
		record.Seconds(o.Until), o.Lost)
}

// held reports whether there is an interval in which the client certainly held
// the lock. There is none if it was stopped between admission and reading the
// clock.
func (o *Operation) held() bool { return o.Begin > 0 && o.valid() > o.Begin }

// life returns the client's life that the operation belongs to, which is the
// prefix of its name.
func (o *Operation) life() string { return o.Op[:max(0, strings.LastIndexByte(o.Op, '.'))] }

// claim identifies the claim among those of one name: a token is the claim's
// ticket, followed by the number of the holder under it, below 2^10.
func (o *Operation) claim() uint64 { return o.Token >> 10 }

// valid returns the end of the interval in which the client certainly held the
// lock. If a hold is lost early because a node has lost its data, its
// ValidUntil is void. The interval then ends when the hold was last seen valid.
func (o *Operation) valid() int64 {
	if o.End > 0 {
		return max(min(o.End, o.Until), o.Seen)
	}
	return o.Until
}

// Sighting is the answer to the question who leads, or whether a round is done:
// the token of the leader or of the run, 0 for none.
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
	AfterFaults       // the faults have ended, but their consequences may remain
	AllWell
)

// Phases are the moments when the second and the third phase began, and when
// all ended.
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

// History is the content of all logs of the clients.
type History struct {
	Ops      []*Operation // in the order of their calls
	ByOp     map[string]*Operation
	Told     []Sighting
	Lives    int // of clients
	Late     int // clients that closed without a confirmation from every node
	Troubles []string
}

// loadHistory reads the logs in a directory. The last line of a killed client
// may be incomplete.
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
	s.Buffer(nil, 1<<24) // a line may contain stacks
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
			o := &Operation{Op: e.Op, Kind: e.Kind, Name: e.Name, Weight: e.Weight, After: e.After,
				Round: e.Round, Call: e.T}
			if before := h.ByOp[e.After]; before != nil {
				before.Shrunk = true
			}
			h.ByOp[e.Op] = o
			h.Ops = append(h.Ops, o)
			continue
		case record.EvError:
			h.Troubles = append(h.Troubles, fmt.Sprintf("%s at %s: %s",
				strings.TrimSuffix(filepath.Base(path), ".log"), record.Seconds(e.T), e.Err))
			continue
		case record.EvLate:
			h.Late++
			continue
		case record.EvTold:
			by := strings.TrimSuffix(filepath.Base(path), ".log")
			h.Told = append(h.Told, Sighting{By: by, Kind: e.Kind, Name: e.Name, From: e.From,
				To: e.T, Token: e.Token, Words: e.Value})
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

// ours returns the operations of the library's clients, by name.
func (h *History) ours() map[string][]*Operation {
	return h.by(func(o *Operation) bool { return o.Begin > 0 && o.Kind != record.Rival })
}

// by groups operations by name.
func (h *History) by(keep func(*Operation) bool) map[string][]*Operation {
	all := map[string][]*Operation{}
	for _, o := range h.Ops {
		if keep(o) {
			all[o.Name] = append(all[o.Name], o)
		}
	}
	return all
}
