package redistest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/testkit/process"
)

// start begins a life of the server and waits until it answers. After an error
// no process is left.
func (s *Server) start() error {
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("redistest: %w", err)
	}
	defer func() { _ = log.Close() }() // the child has its own copy
	before, err := log.Stat()
	if err != nil {
		return fmt.Errorf("redistest: %w", err)
	}

	args := []string{
		"--bind", "127.0.0.1", "--port", strconv.Itoa(s.port), "--dir", s.host.dir,
		"--save", "", "--appendonly", "no",
	}
	if s.cfg.password != "" {
		args = append(args, "--requirepass", s.cfg.password)
	}
	if s.bus > 0 {
		args = append(args, "--cluster-port", strconv.Itoa(s.bus))
	}
	line := slices.Concat(s.cfg.under, []string{s.binary}, args, s.cfg.args)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Dir = s.host.dir
	cmd.Stdout, cmd.Stderr = log, log
	if s.machine() {
		if err := s.host.load(cmd); err != nil {
			return err
		}
	}
	p, err := process.Start(cmd)
	if err != nil {
		return fmt.Errorf("redistest: %w", err)
	}
	s.proc, s.stopped = p, false

	err = s.awaitAnswer()
	if err == nil && s.machine() {
		err = s.loaded()
	}
	if err != nil {
		err = errors.Join(err, s.kill())
		text, _ := os.ReadFile(s.logFile())
		text = bytes.TrimSpace(text[min(int(before.Size()), len(text)):])
		if bytes.Contains(text, []byte("Address already in use")) {
			err = errors.Join(err, errPortTaken)
		}
		return fmt.Errorf("redistest: start %s %s: %w; it wrote:\n%s", Binary, s.Addr(), err, text)
	}
	return nil
}

// loaded finds out whether it has: a loader says nothing about a library that
// it does not load.
func (s *Server) loaded() error {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", s.proc.Pid()))
	if err == nil && !bytes.Contains(maps, []byte(s.host.library())) {
		err = fmt.Errorf("%s has not loaded it", s.binary)
	}
	if err != nil {
		return fmt.Errorf("redistest: the clock and the disk of %s: %w", s.Addr(), err)
	}
	return nil
}

// awaitAnswer waits until the process just started answers.
func (s *Server) awaitAnswer() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	tick := time.NewTicker(startPoll)
	defer tick.Stop()
	for {
		err := s.probe(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-s.proc.Exited():
			return errors.New("it ended at once")
		case <-ctx.Done():
			return fmt.Errorf("no answer within %v: %w", startTimeout, err)
		case <-tick.C:
		}
	}
}

// probe asks whether the process just started answers. An answer alone does not
// tell: if a stranger has the port, it is the stranger's. So the answer must
// name our process.
func (s *Server) probe(ctx context.Context) error {
	// A client that fails to dial goes on dialling in the background, so see
	// first that a program listens.
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp4", s.Addr())
	if err != nil {
		return err
	}
	_ = conn.Close()

	opts := s.clientOptions()
	opts.MaxRetries = -1
	client := redis.NewClient(opts)
	defer func() { _ = client.Close() }()
	if err := client.Ping(ctx).Err(); err != nil { // an error too while it loads its data
		return err
	}
	info, err := client.Info(ctx, "server").Result()
	if err != nil {
		return err
	}
	if !strings.Contains(info, fmt.Sprintf("process_id:%d\r\n", s.proc.Pid())) {
		return errors.New("another server answers on this port")
	}
	return nil
}
