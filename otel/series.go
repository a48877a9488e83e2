package otel

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// series is what the calls of one kind and name have in common. To make a set
// of attributes costs more than all else here, so none is made twice.
type series struct {
	kind          string
	attr          []attribute.KeyValue
	set           metric.MeasurementOption // of attr
	start         []trace.SpanStartOption
	waiting, held atomic.Int64

	acquired, local, released func() end // of what has not failed
}

// end is how an acquisition or a hold has ended, as attributes.
type end struct {
	attr   []attribute.KeyValue
	record []metric.RecordOption
}

// most is how many series there are with a name: what comes later has none. By
// default the SDK tells 2,000 apart, and those without a name are among them.
const most = 1900

// of returns the series of a kind and name.
func (t *Telemetry) of(kind, name string) *series {
	return t.series(kind, t.name(kind, name))
}

func (t *Telemetry) series(kind, name string) *series {
	key := [2]string{kind, name}
	if s, ok := t.known.Load(key); ok {
		return s.(*series)
	}
	if name != "" && t.kept.Load() >= most {
		return t.series(kind, "")
	}
	s := &series{kind: kind, attr: []attribute.KeyValue{kindKey.String(kind)}}
	if name != "" {
		s.attr = append(s.attr, nameKey.String(name))
	}
	s.attr = slices.Clip(s.attr) // it is appended to
	s.set = metric.WithAttributeSet(attribute.NewSet(s.attr...))
	s.start = []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(s.attr...)}
	s.acquired = sync.OnceValue(func() end { return s.ended("acquired", nil) })
	s.local = sync.OnceValue(func() end { return s.ended("local", nil) })
	s.released = sync.OnceValue(func() end { return s.ended("released", nil) })
	kept, twice := t.known.LoadOrStore(key, s)
	if !twice {
		t.kept.Add(1)
		// Prometheus sees no increase in a series that begins with the first
		// loss.
		t.lost.Add(context.Background(), 0, metric.WithAttributes(append(s.attr, errorKey.String("lost"))...))
	}
	return kept.(*series)
}

// ended adds the outcome to the attributes.
func (s *series) ended(outcome string, err error) end {
	own := []attribute.KeyValue{outcomeKey.String(outcome)}
	if err != nil {
		own = append(own, errorKey.String(errorType(err)))
	}
	set := attribute.NewSet(append(s.attr, own...)...)
	return end{slices.Clip(own), []metric.RecordOption{metric.WithAttributeSet(set)}}
}
