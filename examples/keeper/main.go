// Command keeper holds locks for programs that are not written in Go. It holds
// a lock for as long as an HTTP request lasts:
//
//	QUORATE_NODES=a:6379,b:6379,c:6379 keeper /run/keeper.sock
//	curl -N --unix-socket /run/keeper.sock -X POST http://keeper/locks/invoices
//
// The answer begins when the client holds the lock, with its fencing token. The
// keeper releases the lock when the client closes the connection or dies. The
// answer ends when the lock is lost or the keeper dies.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/mutex"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")})
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("unix", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Handler: keeper(q)}
	context.AfterFunc(ctx, func() { _ = server.Close() }) // ends all requests
	err = server.Serve(listener)
	if err := errors.Join(err, q.Close()); !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
}

// keeper holds the lock NAME for as long as POST /locks/NAME lasts.
func keeper(q *quorate.Quorum) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /locks/{name}", func(w http.ResponseWriter, r *http.Request) {
		m, held := mutex.New(q, r.PathValue("name")), false
		err := m.Do(r.Context(), func(ctx context.Context) error {
			held = true
			_, _ = fmt.Fprintln(w, m.Lease().Token())
			if err := http.NewResponseController(w).Flush(); err != nil {
				return err
			}
			<-ctx.Done() // the client has gone, or the lock is lost
			return nil
		})
		switch {
		case held: // the end of the answer says it all
		case errors.Is(err, quorate.ErrInvalid):
			http.Error(w, err.Error(), http.StatusBadRequest)
		default:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	return mux
}
