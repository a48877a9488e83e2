package board

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/quorate/quorate/cmd/quorate/internal/lanes"
)

// Bounds of the picture. A column is a second, the pause between two looks.
const (
	columns   = 300
	mostLanes = 40    // names
	mostQueue = 12    // processes of one name
	mostRuns  = 10000 // of all lanes; names that come later have no lanes of their processes
)

// A Picture is the last five minutes: a lane for each node and each name, and
// for each process at a name.
type Picture struct {
	Columns   int       `json:"columns"`
	Seconds   float64   `json:"seconds"` // that they show
	Nodes     []Lane    `json:"nodes"`   // Held is NodeGuard, NodeAway or NodeRefuses
	Names     []Lane    `json:"names"`
	Processes []Painted `json:"processes"` // Held n is Processes[n-1]
}

// A Lane shows what was so when.
type Lane struct {
	Name  string      `json:"name"`
	Held  []lanes.Run `json:"held"`            // which process held the name; in the lane of a process 1
	Wait  []lanes.Run `json:"wait,omitempty"`  // how many waited; in the lane of a process 1
	Queue []Lane      `json:"queue,omitempty"` // the processes
}

// Painted is a process, and the number of its colour; or several processes,
// and -1.
type Painted struct {
	Process string `json:"process"`
	Short   string `json:"short"`
	Colour  int    `json:"colour"`
}

// painter gives colours to processes. A process keeps its colour as long as it
// is in the picture.
type painter struct {
	colours map[string]int
	next    int
	numbers map[string]int // in the picture that is being made
	all     []Painted
}

// number returns the place of a process in the picture, from 1 on.
func (p *painter) number(process string) int {
	if n, known := p.numbers[process]; known {
		return n
	}
	if _, known := p.colours[process]; !known && !named.MatchString(process) {
		p.colours[process] = -1 // several processes
	} else if !known {
		p.colours[process] = p.next
		p.next++
	}
	p.all = append(p.all, Painted{Printable(process), Printable(short(process)), p.colours[process]})
	p.numbers[process] = len(p.all)
	return len(p.all)
}

// picture draws what has happened, the names in the given order first.
func (b *Board) picture(order []string) Picture {
	p := Picture{Columns: columns, Seconds: span.Seconds(), Nodes: []Lane{},
		Names: []Lane{}, Processes: []Painted{}}
	b.painter.numbers, b.painter.all = map[string]int{}, nil
	for _, n := range b.now.Nodes {
		p.Nodes = append(p.Nodes, Lane{Name: Printable(n.Name),
			Held: b.runs(b.nodeHistory[n.Name], func(p *part) int { return p.number })})
	}
	left := mostRuns
	for _, id := range append(slices.Clone(order), slices.Sorted(maps.Keys(b.past))...) {
		h := b.past[id]
		if n := b.names[id]; n != nil {
			h = n.history
		}
		if h == nil || len(h.all) == 0 || len(p.Names) == mostLanes {
			continue
		}
		lane := b.lane(id, h)
		if left -= len(lane.Held) + len(lane.Wait); left > 0 {
			lane.Queue = b.queue(h)
		}
		for _, q := range lane.Queue {
			left -= len(q.Held) + len(q.Wait)
		}
		p.Names = append(p.Names, lane)
	}
	p.Processes = append(p.Processes, b.painter.all...)
	maps.DeleteFunc(b.painter.colours, func(process string, _ int) bool {
		return b.painter.numbers[process] == 0
	})
	return p
}

func (b *Board) runs(h *history, value func(p *part) int) []lanes.Run {
	if h == nil {
		return nil
	}
	w := lanes.Window{To: span, Columns: columns}
	return slices.DeleteFunc(lanes.Runs(w.Values(h.spans(b.now.At, value))),
		func(r lanes.Run) bool { return r.Value() == 0 })
}

// lane is the lane of a name.
func (b *Board) lane(id string, h *history) Lane {
	return Lane{
		Name: Printable(id),
		Held: b.runs(h, func(p *part) int {
			switch {
			case !p.holds || p.several:
				return 0
			case p.process == "":
				return b.painter.number(fmt.Sprintf("%d processes", p.number))
			}
			return b.painter.number(p.process)
		}),
		Wait: b.runs(h, func(p *part) int {
			if p.holds {
				return 0
			}
			return p.number
		}),
	}
}

// queue are the lanes of the processes at a name, in the order in which they
// came.
func (b *Board) queue(h *history) (all []Lane) {
	var processes []string
	for i := range h.all {
		if p := h.all[i].process; p != "" && !slices.Contains(processes, p) {
			processes = append(processes, p)
		}
	}
	for _, process := range processes[max(0, len(processes)-mostQueue):] {
		of := func(holds bool) func(p *part) int {
			return func(p *part) int {
				if p.process != process || p.holds != holds {
					return 0
				}
				return b.painter.number(process)
			}
		}
		all = append(all, Lane{Name: Printable(process), Held: b.runs(h, of(true)), Wait: b.runs(h, of(false))})
	}
	return all
}

// nodePart is what is so at a node, nothing if it serves.
func nodePart(n *Node) []part {
	switch {
	case !n.Up:
		return []part{{number: NodeAway}}
	case n.Cause != "":
		return []part{{number: NodeRefuses}}
	case n.Recovering > 0:
		return []part{{number: NodeGuard}}
	}
	return nil
}

// named is how Process names a process.
var named = regexp.MustCompile(`^process (\d+) on (\S+)(?: \((.*)\))?$`)

// short names a process where there is little room: by its label, or by host
// and pid.
func short(process string) string {
	m := named.FindStringSubmatch(process)
	switch {
	case m == nil:
		return process
	case m[3] != "":
		return m[3]
	}
	return m[2] + ":" + m[1]
}

// remember keeps the history of names that are not in use any more.
func (b *Board) remember(at time.Time, names map[string]*name) {
	for id, n := range b.names {
		if names[id] == nil && len(b.past) < 2*MostNames {
			b.past[id] = n.history
		}
	}
	for id, h := range b.past {
		h.see(at, nil)
		if len(h.all) == 0 || names[id] != nil {
			delete(b.past, id)
		}
	}
}
