package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// operation is what a client asked for and what came of it, as its log tells.
// Times are of now; 0 where something has not happened.
type operation struct {
	Op, Kind, Name string
	After          string // the operation whose hold this one goes on with
	Shrunk         bool   // another goes on with this one's
	Weight         int64
	Phase          phase // in which it was called
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

func (o *operation) String() string {
	return fmt.Sprintf("%s %s weight %d token %d: called %s, held from %s until %s (validity %s, lost %t)", o.Op, o.Name, o.Weight, o.Token,
		seconds(o.Call), seconds(o.Begin), seconds(o.valid()), seconds(o.Until), o.Lost)
}

// held says whether there is an interval in which the client held it. There is
// none if it was stopped between the admission and looking at the clock.
func (o *operation) held() bool { return o.Begin > 0 && o.valid() > o.Begin }

// life is the client's life that the operation is of: the prefix of its name.
func (o *operation) life() string { return o.Op[:max(0, strings.LastIndexByte(o.Op, '.'))] }

// claim tells the claims of one name apart: a token is a claim's ticket and
// which of its holders it is, below 2^10.
func (o *operation) claim() uint64 { return o.Token >> 10 }

// valid is the end of that interval. A hold that is lost before its time,
// because a node has forgotten it, has no ValidUntil any more: then it is the
// last moment at which it had one.
func (o *operation) valid() int64 {
	if o.End > 0 {
		return max(min(o.End, o.Until), o.Seen)
	}
	return o.Until
}

// sighting is the answer that a client got when it asked for the leader, or
// whether something is done: the token of the leader or of the run, 0 for none.
type sighting struct {
	By, Kind, Name string
	From, To       int64
	Token          uint64
	Words          string // the whole answer
}

// phase is a part of a run.
type phase int

const (
	underFaults phase = iota
	afterFaults       // faults are over, and what they have left behind still may be there
	allWell
)

// phases are the moments when the second and the third of them began.
type phases struct{ faultsOver, well, ended int64 }

func (p phases) of(at int64) phase {
	switch {
	case at >= p.well:
		return allWell
	case at >= p.faultsOver:
		return afterFaults
	default:
		return underFaults
	}
}

// history is all that the clients have written down.
type history struct {
	Ops      []*operation // in the order of their calls
	ByOp     map[string]*operation
	Told     []sighting
	Lives    int // of clients
	Late     int // clients that closed without every node's word
	Troubles []string
}

// loadHistory reads the logs in a directory. The last line of a client that was
// killed may be half there.
func loadHistory(dir string, ps phases) (*history, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		return nil, err
	}
	h := &history{Lives: len(files), ByOp: map[string]*operation{}}
	for _, f := range files {
		if err := h.load(f); err != nil {
			return nil, err
		}
	}
	for _, o := range h.Ops {
		o.Phase = ps.of(o.Call)
	}
	slices.SortFunc(h.Ops, func(a, b *operation) int { return cmp.Compare(a.Call, b.Call) })
	return h, nil
}

func (h *history) load(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<24) // stacks may be in it
	for s.Scan() {
		var e event
		if err := json.Unmarshal(s.Bytes(), &e); err != nil {
			if s.Scan() {
				return fmt.Errorf("%s: %w", path, err)
			}
			return s.Err()
		}
		switch e.E {
		case evCall:
			o := &operation{Op: e.Op, Kind: e.Kind, Name: e.Name, Weight: e.Weight, After: e.After, Round: e.Round, Call: e.T}
			if before := h.ByOp[e.After]; before != nil {
				before.Shrunk = true
			}
			h.ByOp[e.Op] = o
			h.Ops = append(h.Ops, o)
			continue
		case evError:
			h.Troubles = append(h.Troubles, fmt.Sprintf("%s at %s: %s", strings.TrimSuffix(filepath.Base(path), ".log"), seconds(e.T), e.Err))
			continue
		case evLate:
			h.Late++
			continue
		case evTold:
			by := strings.TrimSuffix(filepath.Base(path), ".log")
			h.Told = append(h.Told, sighting{By: by, Kind: e.Kind, Name: e.Name, From: e.From, To: e.T, Token: e.Token, Words: e.Value})
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

func (o *operation) note(e event) {
	switch e.E {
	case evFail:
		o.Failed, o.Err = e.T, e.Err
	case evBegin:
		o.Begin, o.Token, o.Until, o.Value = e.T, e.Token, e.Until, e.Value
	case evDone:
		o.Done = e.T
	case evUntil:
		o.Until = e.Until
	case evEnd:
		if o.End == 0 {
			o.End, o.Until, o.Seen, o.Lost = e.T, e.Until, e.Seen, e.Lost
		}
	}
}

// ours are the holds of the library's clients, of each name.
func (h *history) ours() map[string][]*operation {
	return h.by(func(o *operation) bool { return o.Begin > 0 && o.Kind != rival })
}

// by sorts the operations into those of each name.
func (h *history) by(keep func(*operation) bool) map[string][]*operation {
	all := map[string][]*operation{}
	for _, o := range h.Ops {
		if keep(o) {
			all[o.Name] = append(all[o.Name], o)
		}
	}
	return all
}
