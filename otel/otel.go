// Package otel exports metrics to OpenTelemetry, and a span for each call that
// acquires something.
//
//	t := otel.New()
//	q, err := quorate.Connect(ctx, urls, quorate.WithTracer(t), quorate.WithObserver(t))
//
// The instruments have the attribute quorate.kind (the package of the
// primitive: mutex, semaphore …), and also quorate.name if you set
// [WithNameFunc]:
//
//	quorate.lock.wait.duration  histogram, s      duration of calls, including those that failed
//	quorate.lock.hold.duration  histogram, s      duration of holds that have ended
//	quorate.lock.waiting        up-down counter   calls in progress
//	quorate.lock.held           up-down counter   current holds
//	quorate.lock.lost           counter           holds that ended without a release
//	quorate.lock.bare           counter           holds that began to depend on a bare majority: quorate.BareHold
//	quorate.leader              up-down counter   elections in which this process is the leader
//	quorate.node.up             gauge             by quorate.node, for nodes of the set: 1 if connected
//	quorate.node.votes          gauge             by quorate.node: 1 if past its guard time and accepting locks
//	quorate.node.refuses        gauge             by quorate.node: 1 if it answers but refuses new locks
//
// A gauge is 0 in all other cases.
//
// The durations also have the attribute quorate.outcome: acquired, local (no
// node was asked) or failed for waits, and released or lost for holds. Failed
// calls and lost holds also have error.type: held, no_quorum, lost, evicted,
// closed, invalid, canceled, timeout or _OTHER.
package otel

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// scope is the name of the meter and of the tracer.
const scope = "github.com/quorate/quorate/otel"

// The keys of the attributes.
const (
	kindKey    = attribute.Key("quorate.kind")
	nameKey    = attribute.Key("quorate.name")
	outcomeKey = attribute.Key("quorate.outcome")
	nodeKey    = attribute.Key("quorate.node")
	errorKey   = attribute.Key("error.type")
)

// bounds are those of the histograms, in seconds: from 0.1 ms to 60 s.
var bounds = []float64{.0001, .0002, .0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2,
	5, 10, 20, 30, 60}

// Telemetry implements [quorate.Tracer] and [quorate.Observer]. Create it with
// [New]. It is safe for concurrent use. If several Quorums share it, their
// numbers are added up, except that quorate.node.up shows the last event from
// any of them. Closing a Quorum leaves the values as they are.
type Telemetry struct {
	name   func(kind, name string) string
	tracer trace.Tracer

	known sync.Map // of *series, by kind and name
	kept  atomic.Int64
	nodes sync.Map // of node, by address

	wait, hold            metric.Float64Histogram
	waiting, held, leader metric.Int64ObservableUpDownCounter
	lost, bare            metric.Int64Counter

	nodeUp, nodeVotes, nodeRefuses metric.Int64ObservableGauge
}

var (
	_ quorate.Tracer   = (*Telemetry)(nil)
	_ quorate.Observer = (*Telemetry)(nil)
)

// An Option is an option for [New].
type Option func(*config)

type config struct {
	meters  metric.MeterProvider
	tracers trace.TracerProvider
	name    func(kind, name string) string
}

// WithMeterProvider sets the provider for metrics. The default is the global
// provider.
func WithMeterProvider(p metric.MeterProvider) Option { return func(c *config) { c.meters = p } }

// WithTracerProvider sets the provider for spans. The default is the global
// provider.
func WithTracerProvider(p trace.TracerProvider) Option { return func(c *config) { c.tracers = p } }

// WithNameFunc adds the attribute quorate.name with the value that f returns
// for a name. If f returns "", the attribute is omitted. f should return only a
// few distinct values, because each of them is a separate time series: return
// "order" for "order:4711", for example. By default there is no name.
func WithNameFunc(f func(kind, name string) string) Option {
	return func(c *config) {
		if f != nil {
			c.name = f
		}
	}
}

// New returns a Telemetry. Options: [WithMeterProvider], [WithTracerProvider]
// and [WithNameFunc]. If the provider rejects an instrument, the error goes to
// OpenTelemetry's error handler, and the instrument records nothing.
func New(opts ...Option) *Telemetry {
	c := config{meters: otel.GetMeterProvider(), tracers: otel.GetTracerProvider(),
		name: func(string, string) string { return "" }}
	for _, o := range opts {
		o(&c)
	}
	m := c.meters.Meter(scope)
	t := &Telemetry{name: c.name, tracer: c.tracers.Tracer(scope)}
	var errs [11]error
	t.wait, errs[0] = m.Float64Histogram("quorate.lock.wait.duration", metric.WithUnit("s"),
		metric.WithDescription("Duration of calls that acquire a lock, including failed calls."),
		metric.WithExplicitBucketBoundaries(bounds...))
	t.hold, errs[1] = m.Float64Histogram("quorate.lock.hold.duration", metric.WithUnit("s"),
		metric.WithDescription("Duration of holds that have ended."),
		metric.WithExplicitBucketBoundaries(bounds...))
	t.waiting, errs[2] = m.Int64ObservableUpDownCounter("quorate.lock.waiting", metric.WithUnit("{call}"),
		metric.WithDescription("Calls that are waiting to acquire a lock."))
	t.held, errs[3] = m.Int64ObservableUpDownCounter("quorate.lock.held", metric.WithUnit("{hold}"),
		metric.WithDescription("Holds of this process."))
	t.lost, errs[4] = m.Int64Counter("quorate.lock.lost", metric.WithUnit("{hold}"),
		metric.WithDescription("Holds that ended without a release."))
	t.bare, errs[10] = m.Int64Counter("quorate.lock.bare", metric.WithUnit("{hold}"),
		metric.WithDescription("Holds that came to rest on a bare majority of the nodes."))
	t.leader, errs[5] = m.Int64ObservableUpDownCounter("quorate.leader", metric.WithUnit("{election}"),
		metric.WithDescription("Elections that this process leads."))
	t.nodeUp, errs[6] = m.Int64ObservableGauge("quorate.node.up", metric.WithUnit("{node}"),
		metric.WithDescription("1 while this process is connected to the node, else 0."))
	t.nodeVotes, errs[9] = m.Int64ObservableGauge("quorate.node.votes", metric.WithUnit("{node}"),
		metric.WithDescription("1 while the node is connected, past its guard time and accepting new locks, else "+
			"0."))
	t.nodeRefuses, errs[8] = m.Int64ObservableGauge("quorate.node.refuses", metric.WithUnit("{node}"),
		metric.WithDescription("1 while the node answers and refuses new locks, else 0."))
	// What runs is counted here, and told when it is asked for: to add to an
	// instrument takes longer.
	_, errs[7] = m.RegisterCallback(t.tell, t.waiting, t.held, t.leader, t.nodeUp, t.nodeVotes, t.nodeRefuses)
	if err := errors.Join(errs[:]...); err != nil {
		otel.Handle(err)
	}
	t.bare.Add(context.Background(), 0) // so that the first one is an increase
	return t
}

// tell observes what runs.
func (t *Telemetry) tell(_ context.Context, o metric.Observer) error {
	for _, v := range t.known.Range {
		s := v.(*series)
		o.ObserveInt64(t.waiting, s.waiting.Load(), s.set)
		o.ObserveInt64(t.held, s.held.Load(), s.set)
		if s.kind == "leader" {
			o.ObserveInt64(t.leader, s.held.Load(), s.set)
		}
	}
	for addr, v := range t.nodes.Range {
		n, of := v.(node), metric.WithAttributes(nodeKey.String(addr.(string)))
		o.ObserveInt64(t.nodeUp, gauge(n.up), of)
		o.ObserveInt64(t.nodeVotes, gauge(n.votes(time.Now())), of)
		o.ObserveInt64(t.nodeRefuses, gauge(n.refuses), of)
	}
	return nil
}

// call is the context of an acquisition, which has its span.
type call struct {
	context.Context
	span trace.Span
	*series
}

type callKey struct{}

func (c *call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// AcquireStart begins the span; see [quorate.Tracer].
func (t *Telemetry) AcquireStart(ctx context.Context, a quorate.AcquireInfo) context.Context {
	c := &call{series: t.of(a.Kind, a.Name)}
	c.waiting.Add(1)
	c.Context, c.span = t.tracer.Start(ctx, a.Kind+" acquire", c.start...)
	return c
}

// AcquireEnd ends the span; see [quorate.Tracer].
func (t *Telemetry) AcquireEnd(ctx context.Context, r quorate.AcquireResult) {
	c := ctx.Value(callKey{}).(*call)
	c.waiting.Add(-1)
	var e end
	switch {
	case r.Err != nil:
		e = c.ended("failed", r.Err)
	case r.Local:
		e = c.local()
	default:
		e = c.acquired()
	}
	t.wait.Record(ctx, r.Wait.Seconds(), e.record...)
	if r.Err == nil && !r.Shared {
		c.held.Add(1)
	}
	if c.span.IsRecording() {
		// In one call, as each makes room for its own.
		c.span.SetAttributes(append(e.attr,
			attribute.Bool("quorate.try", r.Try), attribute.Bool("quorate.contended", r.Contended),
			attribute.Int("quorate.votes", r.Votes), attribute.Int("quorate.round_trips", r.RoundTrips),
			attribute.Int("quorate.queue", r.Queue))...)
		// A try that finds the name held has done what it is for.
		if r.Err != nil && !(r.Try && errors.Is(r.Err, quorate.ErrHeld)) {
			c.span.SetStatus(codes.Error, r.Err.Error())
		}
	}
	c.span.End()
}

// HoldEnd records the end of a hold; see [quorate.Tracer].
func (t *Telemetry) HoldEnd(ctx context.Context, r quorate.HoldResult) {
	c := ctx.Value(callKey{}).(*call)
	c.held.Add(-1)
	e := c.released
	if r.Err != nil {
		t.lost.Add(ctx, 1, metric.WithAttributes(append(c.attr, errorKey.String(errorType(r.Err)))...))
		e = func() end { return c.ended("lost", r.Err) }
	}
	t.hold.Record(ctx, r.Held.Seconds(), e().record...)
}

// errorType names an error, as one of few. What a context has cut short is what
// was waited for: the turn or the nodes.
func errorType(err error) string {
	for _, e := range []struct {
		is   error
		name string
	}{
		{quorate.ErrEvicted, "evicted"}, {quorate.ErrLost, "lost"}, {quorate.ErrClosed, "closed"},
		{quorate.ErrInvalid, "invalid"},
		{quorate.ErrNoQuorum, "no_quorum"}, {quorate.ErrHeld, "held"},
		{context.Canceled, "canceled"}, {context.DeadlineExceeded, "timeout"},
	} {
		if errors.Is(err, e.is) {
			return e.name
		}
	}
	return "_OTHER"
}
