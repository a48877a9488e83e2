// Package board is what "quorate top" and "quorate ui" show: the nodes, the
// names that are in use, and what has happened to them lately. It is a pure
// model: it is given what was observed at a moment, and compares that with what
// it was given before.
//
// What happens between two observations is not seen: a name that was released
// and taken by the same process meanwhile was held throughout.
package board

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/quorate/quorate/inspect"
)

// Bounds of what is kept.
const (
	MostNames  = 200             // names that are looked at closely
	mostEvents = 500             // events of the timeline
	span       = 5 * time.Minute // that the timeline reaches back
)

// An Observation is what was seen at a moment.
type Observation struct {
	At      time.Time
	Nodes   []Node
	Quorum  int    // nodes that are needed
	Ready   int    // nodes that vote
	Joined  int    // nodes that are connected
	Names   []Look // at most MostNames
	Whole   bool   // these are all names that are in use
	Total   int    // names in use, as far as they have been counted
	Counted bool   // all of them
	Trouble string // why names cannot be listed; empty: they can
}

// A Node is how a node is, in the words of "quorate check".
type Node struct {
	Name       string  `json:"name"`
	State      string  `json:"state"`
	Cause      string  `json:"cause,omitempty"`              // why it does not serve
	Up         bool    `json:"up"`                           // it answers, and is a member
	Recovering float64 `json:"recovering_seconds,omitempty"` // how much longer it does not vote
}

// A Look is what the nodes said of one name.
type Look struct {
	At     time.Time
	Report inspect.Report
	Unsure bool // too few nodes could say
}

// A Board keeps what the next observation is compared with. It is not safe for
// concurrent use.
type Board struct {
	now    Observation
	nodes  map[string]Node
	names  map[string]*name
	events []Event

	past        map[string]*history // of names that are not in use any more
	nodeHistory map[string]*history
	painter     painter
}

// New returns an empty board.
func New() *Board {
	return &Board{
		nodes: map[string]Node{}, names: map[string]*name{}, past: map[string]*history{},
		nodeHistory: map[string]*history{},
		painter:     painter{colours: map[string]int{}},
	}
}

// Observe takes in what was seen. Observations come in the order of time.
func (b *Board) Observe(o Observation) {
	if len(o.Names) > MostNames {
		o.Names = o.Names[:MostNames]
	}
	nodes := make(map[string]Node, len(o.Nodes))
	for _, n := range o.Nodes {
		if was, known := b.nodes[n.Name]; known {
			b.nodeEvent(o.At, was, n)
		}
		nodes[n.Name] = n
		if b.nodeHistory[n.Name] == nil {
			b.nodeHistory[n.Name] = &history{}
		}
		b.nodeHistory[n.Name].see(o.At, nodePart(&n))
	}
	b.nodes = nodes
	maps.DeleteFunc(b.nodeHistory, func(node string, _ *history) bool { _, known := nodes[node]; return !known })
	names := make(map[string]*name, len(o.Names))
	for i := range o.Names {
		l := &o.Names[i]
		n := b.names[l.Report.Name]
		if n == nil {
			// A name that was not there when all were listed was free.
			n = &name{free: b.now.Whole, history: cmp.Or(b.past[l.Report.Name], &history{})}
		}
		if n.look(b, l); n.unsure || !free(&n.last) {
			names[l.Report.Name] = n
		}
	}
	b.gone(o, names)
	b.remember(o.At, names)
	b.names, b.now = names, o
	b.now.Names = nil // the names keep what is needed of them
	b.forget(o.At)
}

// gone ends the holds of names that are not in use any more. While names cannot
// be listed they stay as they were. Else a name is forgotten that is not looked
// at closely any more: others are in more demand.
func (b *Board) gone(o Observation, names map[string]*name) {
	for id, n := range b.names {
		switch {
		case names[id] != nil:
		case o.Whole:
			n.look(b, &Look{At: o.At, Report: inspect.Report{Name: id}})
		case len(names) < MostNames && o.Trouble != "":
			n.unsure = true
			n.history.pause()
			names[id] = n
		}
	}
}

func free(r *inspect.Report) bool {
	return len(r.Holders)+len(r.Waiters)+r.More == 0 && r.Record == nil && r.Foreign == 0
}

// A View is what is to be shown. All texts are printable.
type View struct {
	At      time.Time `json:"at"`
	Nodes   []Node    `json:"nodes"`
	Quorum  int       `json:"quorum"`
	Ready   int       `json:"ready"`
	Summary string    `json:"summary"` // of the nodes
	Names   []Row     `json:"names"`
	Total   int       `json:"total"`
	Counted bool      `json:"counted"` // Total is not the least that it may be
	Trouble string    `json:"trouble,omitempty"`
	Events  []Event   `json:"events"` // the newest first
	Picture Picture   `json:"picture"`

	// What an operator should look at, in words, the most important first.
	Problems []string `json:"problems"`
}

// A Row is one name.
type Row struct {
	id      string  // the name as it is
	Name    string  `json:"name"`
	Kind    string  `json:"kind"`
	Unsure  bool    `json:"unsure"` // what is shown is the last that was known
	Holders []Claim `json:"holders"`
	Waiters []Claim `json:"waiters"`
	Wait    int     `json:"wait"`             // how many wait, also those that are not in Waiters
	Waited  float64 `json:"waited_seconds"`   // by the first that waits
	Record  string  `json:"record,omitempty"` // what is recorded
	Foreign float64 `json:"foreign_seconds"`  // how long another Redlock client holds the key yet
	Nodes   []Says  `json:"nodes"`            // what each node says
	Late    bool    `json:"late"`             // a holder does not renew its lease
}

// A Claim is a process that holds a name or waits for it.
type Claim struct {
	Process string    `json:"process"`
	Share   string    `json:"share,omitempty"`
	Token   string    `json:"token"` // a string: many programs round numbers above 2^53
	Since   time.Time `json:"since"`
	Left    float64   `json:"left_seconds"` // of its lease; it runs on between two observations
	Votes   int       `json:"votes"`
	Late    bool      `json:"late"` // it does not renew its lease
}

// Says is what a node says of a name.
type Says struct {
	Node    string   `json:"node"`
	Err     string   `json:"err,omitempty"`
	Tokens  []string `json:"tokens"`
	Queued  int      `json:"queued"`
	Differs []string `json:"differs"`
}

// View returns what is to be shown. What is in trouble comes first, then what
// most wait for.
func (b *Board) View() View {
	v := View{
		At: b.now.At, Quorum: b.now.Quorum, Ready: b.now.Ready, Total: b.total(), Counted: b.now.Counted,
		Summary: Ready(b.now.Joined, b.now.Ready, len(b.now.Nodes), b.now.Quorum),
		Trouble: Printable(b.now.Trouble), Nodes: []Node{}, Names: []Row{}, Events: slices.Clone(b.events),
	}
	for _, n := range b.now.Nodes {
		n.Name, n.State, n.Cause = Printable(n.Name), Printable(n.State), Printable(n.Cause)
		v.Nodes = append(v.Nodes, n)
	}
	for _, n := range b.names {
		v.Names = append(v.Names, n.row(b.now.At))
	}
	slices.SortFunc(v.Names, func(a, b Row) int {
		return cmp.Or(rank(&a)-rank(&b), b.Wait-a.Wait, cmp.Compare(a.Name, b.Name))
	})
	order := make([]string, len(v.Names))
	for i := range v.Names {
		order[i] = v.Names[i].id
	}
	v.Picture = b.picture(order)
	v.Problems = v.problems()
	slices.Reverse(v.Events)
	if v.Events == nil {
		v.Events = []Event{}
	}
	return v
}

// Aged returns the view with a problem that says how old it is. It is for a
// view that is shown again because the next one is late.
func (v View) Aged(age time.Duration) View {
	v.Problems = append([]string{fmt.Sprintf("what is shown is %.0f s old: the nodes are slow to answer",
		age.Seconds())}, v.Problems...)
	return v
}

// total is how many names are in use. Names that are only remembered, because
// too few nodes answer now, are not counted.
func (b *Board) total() int {
	sure := 0
	for _, n := range b.names {
		if !n.unsure {
			sure++
		}
	}
	if b.now.Trouble != "" {
		return sure
	}
	return max(b.now.Total, sure)
}

func rank(r *Row) int {
	switch {
	case r.Late:
		return 0
	case r.Wait > 0:
		return 1
	case len(r.Holders) > 0:
		return 2
	}
	return 3
}

// token is a token as it is shown.
func token(t uint64) string { return strconv.FormatUint(t, 10) }
