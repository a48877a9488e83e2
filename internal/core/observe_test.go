package core

import (
	"testing"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/peers"
)

// The cost of tracing for a lock that is not traced.
func BenchmarkUntraced(b *testing.B) {
	q, spec := &claims{Peers: &peers.Peers{}}, &Spec{}
	b.ReportAllocs()
	for b.Loop() {
		_, span := q.Trace(b.Context(), spec, false)
		for range 4 { // a request to each of two nodes, and the answers
			(*traceStats)(nil).record(lease.Joining, 0, nil)
		}
		span.ReportAcquire(none, nil, nil, nil)
		span.setHoldEnd(nil)
		span.ReportHoldEnd()
	}
}
