package health_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/health"
	"github.com/quorate/quorate/leader"
)

// A readiness probe for a service that can't work without its locks.
func ExampleReady() {
	q, err := quorate.Connect(context.Background(), []string{os.Getenv("QUORATE_NODES")})
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	mux := http.NewServeMux()
	mux.Handle("GET /readyz", health.Ready(q))

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
	fmt.Print(w.Code, " ", w.Body.String())
	// Output: 200 ok
}

// A liveness probe has a process replaced if its work is still running a minute
// after its term ended.
func ExampleLive() {
	q, err := quorate.Connect(context.Background(), []string{os.Getenv("QUORATE_NODES")})
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	mux := http.NewServeMux()
	mux.Handle("GET /livez", health.Live(time.Minute, leader.New(q, "reports")))

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("GET", "/livez", nil))
	fmt.Print(w.Code, " ", w.Body.String())
	// Output: 200 ok
}

// A load balancer that uses this probe sends requests only to the leader.
func ExampleLeader() {
	q, err := quorate.Connect(context.Background(), []string{os.Getenv("QUORATE_NODES")})
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	election := leader.New(q, "reports")
	mux := http.NewServeMux()
	mux.Handle("GET /leaderz", health.Leader(election))

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("GET", "/leaderz", nil))
	fmt.Print(w.Code, " ", w.Body.String())
	// Output: 503 this process is not the leader
}
