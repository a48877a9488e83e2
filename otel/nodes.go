package otel

import (
	"context"
	"time"

	"github.com/quorate/quorate"
)

// node is what the events of a node say of it.
type node struct {
	up, refuses bool
	recovers    time.Time // until then, as it is new or lost its data
}

func (n *node) votes(now time.Time) bool { return n.up && !n.refuses && !now.Before(n.recovers) }

// gauge is what a gauge shows of a state.
func gauge(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// Observe records an event; see [quorate.Observer].
func (t *Telemetry) Observe(e quorate.Event) {
	if e.Kind == quorate.EventBareHold {
		t.bare.Add(context.Background(), 1)
		return
	}
	last, _ := t.nodes.Load(e.Node)
	n, _ := last.(node)
	switch e.Kind {
	case quorate.EventNodeUp, quorate.EventNodeAccepts:
		n.up, n.refuses = true, false
	case quorate.EventNodeRefuses:
		n.up, n.refuses = true, true
	case quorate.EventNodeDown:
		n.up, n.refuses = false, false
	case quorate.EventNodeRecovering:
		n.recovers = time.Now().Add(e.Took)
	case quorate.EventNodeLeft:
		t.nodes.Delete(e.Node)
		return
	default:
		return
	}
	t.nodes.Store(e.Node, n)
}
