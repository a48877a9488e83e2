package demo

import (
	"encoding/json"
	"errors"
	"os/exec"
	"time"

	"github.com/quorate/quorate/internal/testkit/worker"
)

// startNode starts a node, and returns the URL that it says it has.
func startNode(cmd *exec.Cmd, patience time.Duration) (*worker.Worker, string, error) {
	url := make(chan string, 1)
	p, err := worker.Start(cmd, func(line string) {
		select {
		case url <- line:
		default: // it has said all that there is to say
		}
	})
	if err != nil {
		return nil, "", err
	}
	select {
	case u := <-url:
		return p, u, nil
	case <-p.Done():
		return p, "", errors.Join(errors.New("it exited at once"), p.Failure())
	case <-time.After(patience):
		return p, "", errors.New("it did not start")
	}
}

// startWorker starts a worker, and calls take for each message of it, and with
// nil when it has ended.
func startWorker(cmd *exec.Cmd, take func(*message)) (*worker.Worker, error) {
	p, err := worker.Start(cmd, func(line string) {
		var m message
		if json.Unmarshal([]byte(line), &m) == nil { // else it was killed while it wrote
			take(&m)
		}
	})
	if err != nil {
		return nil, err
	}
	go func() {
		<-p.Done()
		take(nil)
	}()
	return p, nil
}
