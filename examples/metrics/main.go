// Command metrics shows how a service gives Prometheus what Quorate does. It
// locks a name every second, and serves /metrics and probes on port 8080.
//
//	QUORATE_NODES=a:6379,b:6379,c:6379 metrics
package main

import (
	"context"
	"errors"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/health"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/otel"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, os.Getenv("QUORATE_NODES")); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

// instrument returns what is given to a Quorum, and the page that Prometheus
// reads.
func instrument() ([]quorate.Option, http.Handler, error) {
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry))
	if err != nil {
		return nil, nil, err
	}
	t := otel.New(
		otel.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))),
		otel.WithNameFunc(func(_, name string) string { // one series for all orders
			class, _, _ := strings.Cut(name, ":")
			return class
		}))
	return []quorate.Option{quorate.WithTracer(t), quorate.WithObserver(t)},
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), nil
}

func serve(ctx context.Context, nodes string) error {
	opts, page, err := instrument()
	if err != nil {
		return err
	}
	q, err := quorate.Connect(ctx, []string{nodes}, opts...)
	if err != nil {
		return err
	}
	defer q.Close()
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", page)
	mux.Handle("GET /readyz", health.Ready(q))
	mux.Handle("GET /livez", health.Live(time.Minute))
	server := &http.Server{Addr: ":8080", Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		m := mutex.New(q, "order:4711")
		for ctx.Err() == nil {
			if err := m.Do(ctx, pause); err != nil && ctx.Err() == nil {
				log.Print(err)
			}
		}
		_ = server.Close()
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// pause stands for work.
func pause(ctx context.Context) error {
	select {
	case <-time.After(time.Second):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
