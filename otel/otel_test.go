package otel_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/inspect"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/otel"
	"github.com/quorate/quorate/quoratetest"
	"github.com/quorate/quorate/rwmutex"
	"github.com/quorate/quorate/semaphore"
)

// sink is a Telemetry whose metrics and spans stay in memory.
type sink struct {
	t      *testing.T
	reader *sdk.ManualReader
	spans  *tracetest.SpanRecorder
	tracer *trace.TracerProvider
	given  *otel.Telemetry
}

func newSink(t *testing.T, opts ...otel.Option) *sink {
	s := &sink{t: t, reader: sdk.NewManualReader(), spans: tracetest.NewSpanRecorder()}
	meter := sdk.NewMeterProvider(sdk.WithReader(s.reader))
	s.tracer = trace.NewTracerProvider(trace.WithSpanProcessor(s.spans))
	t.Cleanup(func() {
		assert.NoError(t, meter.Shutdown(context.Background()))
		assert.NoError(t, s.tracer.Shutdown(context.Background()))
	})
	s.given = otel.New(append([]otel.Option{otel.WithMeterProvider(meter), otel.WithTracerProvider(s.tracer)},
		opts...)...)
	return s
}

func (s *sink) options() []quorate.Option {
	return []quorate.Option{quorate.WithTracer(s.given), quorate.WithObserver(s.given)}
}

// metrics returns each series as its name with its attributes, and its value:
// of a histogram how many were recorded, and their sum as "name sum".
func (s *sink) metrics() map[string]float64 {
	s.t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(s.t, s.reader.Collect(context.Background(), &all))
	got := map[string]float64{}
	key := func(m metricdata.Metrics, set attribute.Set) string {
		k := m.Name
		for _, a := range set.ToSlice() {
			k += " " + a.Value.String()
		}
		return k
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch d := m.Data.(type) {
			case metricdata.Histogram[float64]:
				assert.Equal(s.t, "s", m.Unit)
				for _, p := range d.DataPoints {
					assert.Equal(s.t, 0.0001, p.Bounds[0])
					assert.Equal(s.t, 60.0, p.Bounds[len(p.Bounds)-1])
					got[key(m, p.Attributes)] = float64(p.Count)
					got[key(m, p.Attributes)+" sum"] = p.Sum
				}
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					got[key(m, p.Attributes)] = float64(p.Value)
				}
			case metricdata.Gauge[int64]:
				for _, p := range d.DataPoints {
					got[key(m, p.Attributes)] = float64(p.Value)
				}
			}
		}
	}
	return got
}

// sum adds up the series whose key begins with a prefix.
func sum(got map[string]float64, prefix string) (n float64) {
	for k, v := range got {
		if strings.HasPrefix(k, prefix) && !strings.HasSuffix(k, " sum") {
			n += v
		}
	}
	return n
}

func TestMain(m *testing.M) { e2e.MainWithNodes(m) }

// Calls of one kind after the other leave exactly the numbers that they should.
func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		s := newSink(t, otel.WithNameFunc(func(_, name string) string {
			before, _, _ := strings.Cut(name, ":")
			return before
		}), otel.WithNameFunc(nil))
		q, other := c.Quorum(s.options()...), c.Quorum()

		m, theirs := mutex.New(q, "order:1"), mutex.New(other, "order:1")
		m.Lock()
		got := s.metrics()
		first, there := got["quorate.lock.lost lost mutex order"]
		assert.True(t, there && first == 0, "the first loss is an increase")
		assert.Equal(t, 1.0, got["quorate.lock.held mutex order"])
		assert.Equal(t, 3.0, sum(got, "quorate.node.up "))
		assert.Equal(t, 3.0, sum(got, "quorate.node.votes "))
		time.Sleep(3 * time.Second)
		m.Unlock()

		theirs.Lock()
		require.False(t, m.TryLock())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		waited := make(chan error)
		go func() { waited <- m.LockContext(ctx) }()
		synctest.Wait()
		assert.Equal(t, 1.0, s.metrics()["quorate.lock.waiting mutex order"])
		require.ErrorIs(t, <-waited, quorate.ErrHeld)
		theirs.Unlock()

		e := leader.New(q, "e")
		require.NoError(t, e.Campaign(t.Context(), ""))
		assert.Equal(t, 1.0, s.metrics()["quorate.leader leader e"])
		require.NoError(t, e.Resign(t.Context()))

		m.Lock()
		require.NoError(t, inspect.Evict(t.Context(), other, "order:1", m.Lease().Token()))
		require.ErrorIs(t, m.UnlockContext(t.Context()), quorate.ErrEvicted)

		p := semaphore.NewWeighted(q, "p", 1)
		require.NoError(t, p.Acquire(t.Context(), 1))
		c.Stop(0)
		c.Stop(1)
		time.Sleep(10 * time.Second)
		p.Release(1)
		synctest.Wait()

		got = s.metrics()
		assert.InDelta(t, 3, got["quorate.lock.hold.duration mutex order released sum"], 0.1)
		assert.InDelta(t, 1, got["quorate.lock.wait.duration held mutex order failed sum"], 0.3)
		for k, want := range map[string]float64{
			"quorate.lock.wait.duration mutex order acquired":    2,
			"quorate.lock.wait.duration held mutex order failed": 2,
			"quorate.lock.hold.duration mutex order released":    1,
			"quorate.lock.hold.duration leader e released":       1,
			"quorate.lock.hold.duration lost semaphore p lost":   1,
			"quorate.lock.lost lost semaphore p":                 1,
			"quorate.lock.lost evicted mutex order":              1,
			"quorate.lock.lost lost mutex order":                 0,
			"quorate.lock.waiting mutex order":                   0,
			"quorate.lock.held mutex order":                      0,
			"quorate.lock.held semaphore p":                      0,
			"quorate.leader leader e":                            0,
		} {
			v, there := got[k]
			assert.True(t, there, k)
			assert.Equal(t, want, v, k)
		}
		assert.Equal(t, 1.0, sum(got, "quorate.node.up "))
	})
}

// A node that restarts is connected at once, and votes after its guard time.
func TestConnectedAndVoting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := quoratetest.New(t, 3), newSink(t)
		c.Quorum(s.options()...)
		for _, wait := range []time.Duration{10 * time.Second, 15 * time.Second} {
			c.Start(0)
			time.Sleep(wait)
			got := s.metrics()
			assert.Equal(t, 3.0, sum(got, "quorate.node.up "))
			assert.Equal(t, 2.0, sum(got, "quorate.node.votes "), "its guard time has begun again")
		}
		time.Sleep(10 * time.Second)
		assert.Equal(t, 3.0, sum(s.metrics(), "quorate.node.votes "))
	})
}

// Spans are children of what the caller has in its context.
func TestSpans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := quoratetest.New(t, 3), newSink(t)
		q, other := c.Quorum(s.options()...), c.Quorum()
		ctx, parent := s.tracer.Tracer("test").Start(t.Context(), "request")
		m := mutex.New(q, "secret")
		require.NoError(t, m.LockContext(ctx))
		m.Unlock()
		mutex.New(other, "secret").Lock()
		require.ErrorIs(t, m.TryLockContext(ctx), quorate.ErrHeld)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		require.ErrorIs(t, m.LockContext(short), context.DeadlineExceeded)

		spans := s.spans.Ended()
		require.Len(t, spans, 3)
		for i, span := range spans {
			assert.Equal(t, "mutex acquire", span.Name())
			assert.Equal(t, parent.SpanContext().SpanID(), span.Parent().SpanID())
			assert.NotContains(t, fmt.Sprint(span.Attributes()), "secret", "only WithNameFunc gives the name")
			assert.Equal(t, i == 2, span.Status().Code == codes.Error)
		}
		assert.Contains(t, spans[0].Attributes(), attribute.Int("quorate.round_trips", 1))
		assert.Contains(t, spans[0].Attributes(), attribute.String("quorate.outcome", "acquired"))
		assert.Contains(t, spans[1].Attributes(), attribute.String("error.type", "held"))
		assert.GreaterOrEqual(t, spans[2].EndTime().Sub(spans[2].StartTime()), time.Second)
	})
}

// Names that no number of series would hold are counted as well.
func TestManyNames(t *testing.T) {
	s := newSink(t, otel.WithNameFunc(func(_, name string) string { return name }))
	const n = 3000
	for i := range n {
		info := quorate.AcquireInfo{Kind: "mutex", Name: fmt.Sprint(i)}
		ctx := s.given.AcquireStart(t.Context(), info)
		s.given.AcquireEnd(ctx, quorate.AcquireResult{Kind: info.Kind, Name: info.Name})
		s.given.HoldEnd(ctx, quorate.HoldResult{Kind: info.Kind, Name: info.Name})
	}
	for i := n - 5; i < n+5; i++ { // and stays held
		info := quorate.AcquireInfo{Kind: "mutex", Name: fmt.Sprint(i)}
		s.given.AcquireEnd(s.given.AcquireStart(t.Context(), info),
			quorate.AcquireResult{Kind: info.Kind, Name: info.Name})
	}
	got := s.metrics()
	assert.Equal(t, 10.0, got["quorate.lock.held mutex"], "without their names")
	assert.Equal(t, 1.0, got["quorate.lock.wait.duration mutex 0 acquired"])
	assert.EqualValues(t, n+10, sum(got, "quorate.lock.wait.duration "))
	assert.EqualValues(t, n, sum(got, "quorate.lock.hold.duration "))
	assert.EqualValues(t, 10, sum(got, "quorate.lock.held "))
}

// Metrics without spans cost few allocations.
func TestAllocations(t *testing.T) {
	given := otel.New(otel.WithMeterProvider(sdk.NewMeterProvider(sdk.WithReader(sdk.NewManualReader()))),
		otel.WithNameFunc(func(_, name string) string { return name }))
	assert.LessOrEqual(t, testing.AllocsPerRun(1000, func() {
		ctx := given.AcquireStart(context.Background(), quorate.AcquireInfo{Kind: "mutex", Name: "m"})
		given.AcquireEnd(ctx, quorate.AcquireResult{Kind: "mutex", Name: "m", Wait: time.Millisecond})
		given.HoldEnd(ctx, quorate.HoldResult{Kind: "mutex", Name: "m", Held: time.Millisecond})
	}), 6.0, "it was 37 with attributes made at each call")
}

// Whatever many goroutines have done, the numbers at rest are their own counts.
func TestMetricsAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := quoratetest.New(t, 3), newSink(t)
		atRest(t, s, c.Quorum(s.options()...), c.Quorum(s.options()...))
	})
}

// atRest has goroutines of two clients lock, and compares.
func atRest(t *testing.T, s *sink, qs ...*quorate.Quorum) {
	t.Helper()
	var mu sync.Mutex
	locked, failed := 0.0, 0.0
	count := func(err error) bool {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			locked++
		case errors.Is(err, quorate.ErrHeld), errors.Is(err, quorate.ErrNoQuorum):
			failed++
		default: // the context had ended before the call
			assert.ErrorIs(t, err, context.DeadlineExceeded)
		}
		return err == nil
	}
	var all sync.WaitGroup
	for _, q := range qs {
		m := mutex.New(q, "m")
		for i := range 8 {
			all.Go(func() {
				r := rand.New(rand.NewPCG(1, uint64(i)))
				for range 20 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+r.IntN(20))*time.Millisecond)
					ok := false
					if r.IntN(2) == 0 {
						ok = count(m.TryLockContext(t.Context()))
					} else {
						ok = count(m.LockContext(ctx))
					}
					if cancel(); ok {
						time.Sleep(time.Duration(r.IntN(3)) * time.Millisecond)
						m.Unlock()
					}
				}
			})
		}
	}
	all.Wait()
	// Readers of one process share a hold.
	rw := rwmutex.New(qs[0], "rw")
	rw.RLock()
	rw.RLock()
	assert.Equal(t, 1.0, s.metrics()["quorate.lock.held rwmutex"])
	rw.RUnlock()
	rw.RUnlock()

	got := s.metrics()
	assert.Positive(t, failed)
	assert.Equal(t, locked,
		got["quorate.lock.wait.duration mutex acquired"]+got["quorate.lock.wait.duration mutex local"])
	assert.Equal(t, failed,
		sum(got, "quorate.lock.wait.duration held mutex")+sum(got, "quorate.lock.wait.duration no_quorum mutex"))
	assert.Equal(t, locked, sum(got, "quorate.lock.hold.duration mutex released")+sum(got,
		"quorate.lock.hold.duration lost mutex lost"))
	assert.Zero(t, got["quorate.lock.waiting mutex"])
	assert.Zero(t, got["quorate.lock.held mutex"])
	assert.Zero(t, got["quorate.lock.held rwmutex"])
}
