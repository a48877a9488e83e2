package main

import (
	"context"
	"fmt"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/bench/libraries"
	"github.com/quorate/quorate/internal/bench/report"
	"github.com/quorate/quorate/otel"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// seen measures a free lock with metrics, spans and a warning, next to one
// without any of them.
func seen(nodes int) bench {
	return bench{
		Name: fmt.Sprintf("seen/%d", nodes), Group: "seen", Show: []string{report.Mean, report.BothCPU},
		Title: fmt.Sprintf("1 client, metrics, a span for each lock and a warning, N=%d", nodes),
		open: func(ctx context.Context, st *stage) error {
			n, err := st.start(nodes)
			if err != nil {
				return err
			}
			meters := metric.NewMeterProvider(metric.WithReader(metric.NewManualReader()))
			tracers := trace.NewTracerProvider(trace.WithBatcher(toNowhere{}))
			sampled := trace.NewTracerProvider(trace.WithBatcher(toNowhere{}),
				trace.WithSampler(trace.TraceIDRatioBased(0.01)))
			st.onClose(func() {
				ctx := context.WithoutCancel(ctx)
				_, _, _ = meters.Shutdown(ctx), tracers.Shutdown(ctx), sampled.Shutdown(ctx)
			})
			name := otel.WithNameFunc(func(_, name string) string { return name })
			metrics := otel.New(otel.WithMeterProvider(meters),
				otel.WithTracerProvider(noop.NewTracerProvider()), name)
			few := otel.New(otel.WithMeterProvider(meters), otel.WithTracerProvider(sampled), name)
			both := otel.New(otel.WithMeterProvider(meters), otel.WithTracerProvider(tracers), name)
			warning := quorate.WithWarning(libraries.TTL/2, func(quorate.Lease) {})
			s := scenario{Nodes: nodes, Clients: 1}
			for _, l := range []libraries.Library{
				{Name: report.QuorateName, Open: libraries.OpenQuorate(false), Commands: libraries.ByScript},
				{Name: report.MetricsName, Commands: libraries.ByScript,
					Open: libraries.OpenQuorate(false, quorate.WithTracer(metrics), quorate.WithObserver(metrics), warning)},
				{Name: report.FewName, Commands: libraries.ByScript,
					Open: libraries.OpenQuorate(false, quorate.WithTracer(few), quorate.WithObserver(few), warning)},
				{Name: report.SeenName, Commands: libraries.ByScript,
					Open: libraries.OpenQuorate(false, quorate.WithTracer(both), quorate.WithObserver(both), warning)},
			} {
				if err := s.join(ctx, st, l, l.Name, n); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// toNowhere discards spans, because the cost of exporting them is not the
// library's.
type toNowhere struct{}

func (toNowhere) ExportSpans(context.Context, []trace.ReadOnlySpan) error { return nil }
func (toNowhere) Shutdown(context.Context) error                          { return nil }
