package board

import "time"

// A Kind is what happened.
type Kind string

// The kinds. An evicted holder counts as one that released.
const (
	Taken     Kind = "taken"
	Released  Kind = "released"
	Lost      Kind = "lost"
	TakenOver Kind = "taken over"
	Leads     Kind = "leader"
	NodeDown  Kind = "node down"
	NodeUp    Kind = "node up"
)

// An Event is one line of the timeline.
type Event struct {
	At      time.Time `json:"at"` // when it was seen
	Kind    Kind      `json:"kind"`
	Subject string    `json:"subject"` // the name or the node
	Text    string    `json:"text"`
}

// Bad reports whether an operator should look.
func (k Kind) Bad() bool { return k == Lost || k == TakenOver || k == NodeDown }

func (b *Board) event(at time.Time, kind Kind, subject, text string) {
	b.events = append(b.events, Event{at, kind, Printable(subject), Printable(text)})
}

func (b *Board) nodeEvent(at time.Time, was, is Node) {
	switch {
	case was.Up && !is.Up:
		text := is.State
		if is.Cause != "" {
			text += ": " + reason(is.Cause)
		}
		b.event(at, NodeDown, is.Name, text)
	case !was.Up && is.Up:
		b.event(at, NodeUp, is.Name, is.State)
	case is.Up && was.Cause == "" && is.Cause != "":
		b.event(at, NodeDown, is.Name, is.State+": "+is.Cause)
	case is.Up && was.Cause != "" && is.Cause == "":
		b.event(at, NodeUp, is.Name, is.State)
	case is.Up && was.Recovering == 0 && is.Recovering > 0:
		b.event(at, NodeDown, is.Name, "is new or lost its data: "+is.State)
	case is.Up && was.Recovering > 0 && is.Recovering == 0:
		b.event(at, NodeUp, is.Name, "votes again")
	}
}

// forget drops what the timeline has no room for.
func (b *Board) forget(now time.Time) {
	drop := max(0, len(b.events)-mostEvents)
	for drop < len(b.events) && now.Sub(b.events[drop].At) > span {
		drop++
	}
	b.events = append([]Event(nil), b.events[drop:]...)
}
