package play

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/trial"
	"github.com/quorate/quorate/internal/sim/world"
	"github.com/quorate/quorate/internal/trace"
)

// A trace is a schedule as a person writes it: commands, and after "----" what
// they lead to. The files in testdata are traces, one for each rule and one for
// each fault that was found. testdata/README.md has the table of the commands.
// TestTraces plays them.
//
//	# What it shows, and what goes wrong without the rule.
//	#
//	# without RuleExact: VIOLATION token
//
//	nodes 3 ttl 8s
//	claim e
//	----
//	e joins at +1
//	e holds, ticket +1, until 7.758s
//
// The world is the simulator's: the same state machines, nodes, clocks and
// checks. Chance has no part in it, and the network is a wire.

// PlayTrace plays a trace and returns it with the output that it has now.
// mutate may change the setting.
func PlayTrace(blocks []trace.Block, mutate func(*course.Setting)) []trace.Block {
	p := &player{mutate: mutate}
	defer p.end()
	return trace.Play(blocks, p.do)
}

// end ends the tasks of the world.
func (p *player) end() {
	if p.cast != nil {
		p.cast.World.End()
	}
}

// do carries out one command, and returns what it has led to.
func (p *player) do(line string) (out []string) {
	defer func() {
		if r := recover(); r != nil {
			out = append(out, fmt.Sprintf("panic: %v", r))
		}
	}()
	if p.cast != nil && p.cast.wire.Over {
		return nil
	}
	line, _, _ = strings.Cut(line, " #")
	a := &args{words: strings.Fields(line)}
	name := a.next()
	run, known := p.commands[name]
	switch {
	case name == "nodes" && p.cast != nil:
		return []string{"error: nodes stands at the beginning only"}
	case name == "nodes":
		if err := p.begin(a); err != nil {
			return []string{"error: " + err.Error()}
		}
		p.cast.wire.Settle()
	case p.cast == nil:
		return []string{"error: a trace begins with nodes, such as: nodes 3 ttl 8s"}
	case !known:
		return []string{"error: there is no command " + name}
	default:
		if err := cmp.Or(run(a), a.err); err != nil {
			p.cast.wire.Say("error: %v", err)
		} else if len(a.words) > 0 {
			p.cast.wire.Say("error: %s: what is %q?", name, strings.Join(a.words, " "))
		}
		if p.cast.wire.Check(); !p.cast.World.Manual {
			p.cast.wire.Settle()
		}
	}
	p.cast.changes()
	p.cast.wire.Callers()
	out, p.cast.wire.Lines = p.cast.wire.Lines, nil
	return out
}

// settings are what a trace has unless it says otherwise: a mutex on three
// nodes that vote, exact clocks, and an empty network.
func settings() course.Setting {
	s := course.Setting{
		Nodes: 3, Capacity: 1, Weights: []uint64{1},
		TTL: 8 * time.Second, NodeTimeout: 200 * time.Millisecond,
		Bootstrap: true, Residues: protocol.Residues, Eager: true, Persist: 1000 * time.Hour,
	}
	return s
}

// begin makes the world.
func (p *player) begin(a *args) error {
	s := settings()
	var fresh, silent, manual, repairs bool
	durations := map[string]*time.Duration{
		"ttl": &s.TTL, "guard": &s.Guard, "retention": &s.Retention, "skew": &s.Skew, "timeout": &s.NodeTimeout,
		"linger": &s.Linger, "wakes": &s.Wakes,
	}
	numbers := map[string]*int{
		"portion": &s.Portion, "room": &s.Window, "callers": &s.Callers, "locks": &s.Locks, "names": &s.Names,
		"members": &s.Members,
	}
	flags := map[string]*bool{
		"silent": &silent, "fresh": &fresh, "manual": &manual, "repairs": &repairs,
	}
	for s.Nodes = a.number(); len(a.words) > 0 && a.err == nil; {
		switch option := a.next(); {
		case durations[option] != nil:
			*durations[option] = a.duration()
		case numbers[option] != nil:
			*numbers[option] = a.number()
		case flags[option] != nil:
			*flags[option] = true
		case option == "semaphore":
			s.Capacity, s.Counting = uint64(a.number()), true
		case option == "rwlock":
			s.Capacity = 1 << 30
		default:
			return fmt.Errorf("nodes has no option %q", option)
		}
	}
	if a.err != nil {
		return a.err
	}
	if s.Guard == 0 {
		s.Guard = 2*s.TTL + 2*s.Skew
	}
	if s.Retention == 0 {
		s.Retention = s.Guard
	}
	s.Skew, s.Bootstrap, s.Eager = 0, !fresh, !silent // the skew is one of the settings only: clocks are exact
	if p.mutate != nil {
		p.mutate(&s)
	}
	w := trial.NewSchedule(s, rand.New(rand.NewPCG(1, 2)), nil)
	w.Record, w.LateMessages, w.Offsets = false, true, false
	w.Manual, w.Repairs = manual, repairs
	wire := &Wire{World: w, Began: w.Now, Seen: map[*world.Attempt]Glance{},
		Said: map[string]bool{}, Does: map[string]string{}}
	w.Wire = wire
	p.cast = &cast{World: w, wire: wire, last: map[string]*world.Attempt{}}
	p.commands = commandsOf(p.cast)
	for _, n := range w.Nodes {
		n.Clock.Offset = int64(world.Epoch)*1000 - int64(wire.Began)
	}
	return nil
}

// Shrink leaves out what a trace can do without, such that bad still holds of
// it.
func Shrink(lines []string, bad func([]string) bool) []string {
	for size := len(lines) / 2; size > 0; {
		smaller := false
		for from := len(lines) - size; from > 0; from -= size { // what came last matters least
			from = max(from, 1)
			rest := slices.Concat(lines[:from], lines[min(from+size, len(lines)):])
			if bad(rest) {
				lines, smaller = rest, true
			}
		}
		if !smaller || size > 1 {
			size /= 2
		}
	}
	return lines
}

// BlocksOf makes a trace of lines: a block ends with a line that leads to
// something.
func BlocksOf(lines []string, mutate func(*course.Setting)) []trace.Block {
	var blocks []trace.Block
	p, b := &player{mutate: mutate}, trace.Block{}
	defer p.end()
	for i, l := range lines {
		b.Commands = append(b.Commands, l)
		b.Output = append(b.Output, p.do(l)...)
		if len(b.Output) > 0 || i == len(lines)-1 {
			if len(b.Output) == 0 {
				b.Output = []string{"ok"}
			}
			blocks, b = append(blocks, b), trace.Block{}
		}
	}
	return blocks
}
