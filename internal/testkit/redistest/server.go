package redistest

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/quorate/quorate/internal/testkit/process"
)

const (
	startTimeout = 20 * time.Second      // a loaded machine that reads an append-only file
	startPoll    = 10 * time.Millisecond // between two looks at a server that is starting
	portTries    = 5                     // ports tried in turn when a stranger takes the one just found free
)

// errPortTaken says that the server could not listen on its port.
var errPortTaken = errors.New("port is taken")

// A Server is one redis-server. Its address and directory stay the same across
// restarts. Its methods may be called concurrently.
type Server struct {
	host   host
	binary string
	cfg    config

	// Set once by open.
	port        int
	reservation net.PacketConn
	bus         int // the port of the bus of a Redis Cluster; 0: none
	busReserved net.PacketConn

	mu     sync.Mutex       // one change of state at a time; guards what follows
	proc   *process.Process // one life of the server; nil before the first start
	client *redis.Client
	closed bool

	// See share.go.
	own     bool // it has options
	stopped bool
}

// Addr is host:port.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// URL is redis://host:port, with the password if there is one.
func (s *Server) URL() string {
	u := url.URL{Scheme: "redis", Host: s.Addr()}
	if s.cfg.password != "" {
		u.User = url.UserPassword("", s.cfg.password)
	}
	return u.String()
}

// Dir is the server's working directory, where its append-only file lies.
func (s *Server) Dir() string { return s.host.dir }

// Log is what the server has written to its log so far, over all its lives.
func (s *Server) Log() string {
	text, err := os.ReadFile(s.logFile())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (s *Server) logFile() string { return filepath.Join(s.host.dir, "redis.log") }

// Running says whether the server's process exists. A server that was stopped
// by [Server.Stop] is running.
func (s *Server) Running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc.Running()
}

// Kill ends the server with SIGKILL, as a power cut does, and returns when it
// is gone. Killing a server that is not running does nothing.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kill()
}

func (s *Server) kill() error {
	if !s.proc.Running() {
		return nil
	}
	if err := s.proc.Kill(); err != nil {
		return fmt.Errorf("redistest: kill %s: %w", s.Addr(), err)
	}
	return nil
}

// Stop freezes the server with SIGSTOP, as a long pause does, and returns when
// it stands still (where the system lets us see that: Linux). Connections stay,
// the system still accepts new ones, and nothing is answered until
// [Server.Cont].
func (s *Server) Stop() error { return s.freeze("stop", (*process.Process).Stop) }

// Cont lets a server that was stopped go on. It then carries out what has piled
// up meanwhile.
func (s *Server) Cont() error { return s.freeze("continue", (*process.Process).Continue) }

func (s *Server) freeze(verb string, signal func(*process.Process) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.proc.Running() {
		return fmt.Errorf("redistest: %s %s: server is not running", verb, s.Addr())
	}
	if err := signal(s.proc); err != nil {
		return fmt.Errorf("redistest: %s %s: %w", verb, s.Addr(), err)
	}
	s.stopped = verb == "stop"
	return nil
}

// Restart starts the server again on the same port and in the same directory,
// and returns when it answers. It is empty unless an append-only file brings
// its data back. A server that runs is killed first.
func (s *Server) Restart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if err := s.kill(); err != nil {
		return err
	}
	// A program that holds the port is only passing by: among users of this
	// package the port is reserved.
	deadline := time.Now().Add(startTimeout)
	for {
		err := s.start()
		if !errors.Is(err, errPortTaken) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(startPoll)
	}
}

// Client is a client of this server alone, for preparing and inspecting it.
// Every call returns the same client. The cluster closes it.
func (s *Server) Client() *redis.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == nil {
		s.client = redis.NewClient(s.clientOptions())
		if s.closed {
			_ = s.client.Close()
		}
	}
	return s.client
}

func (s *Server) clientOptions() *redis.Options {
	return &redis.Options{
		Addr:                     s.Addr(),
		Password:                 s.cfg.password,
		DialTimeout:              time.Second,
		ContextTimeoutEnabled:    true,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// open finds a port and a directory, and starts the server for the first time.
func (s *Server) open() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir, err := os.MkdirTemp("", "redistest-")
	if err != nil {
		return fmt.Errorf("redistest: %w", err)
	}
	s.host.dir = dir
	if s.cfg.bus {
		if s.bus, s.busReserved, err = reservePort(); err != nil {
			return err
		}
	}
	for range portTries {
		if s.port, s.reservation, err = reservePort(); err != nil {
			return err
		}
		if err = s.firstStart(); !errors.Is(err, errPortTaken) {
			return err
		}
		_ = s.reservation.Close()
	}
	return err
}

// machine says whether the server has a clock or a disk of its own.
func (s *Server) machine() bool { return s.cfg.ownClock || s.cfg.ownDisk }

func (s *Server) firstStart() error {
	if s.machine() {
		if err := s.host.openMachine(); err != nil {
			return err
		}
	}
	return s.start()
}

// close undoes open, however far it came.
func (s *Server) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	errs := []error{s.kill()}
	if s.client != nil {
		errs = append(errs, s.client.Close())
	}
	// The port is given up last: until then no user of this package can start a
	// server where ours still runs.
	if s.reservation != nil {
		_ = s.reservation.Close()
	}
	if s.busReserved != nil {
		_ = s.busReserved.Close()
	}
	if s.host.dir != "" {
		errs = append(errs, os.RemoveAll(s.host.dir))
	}
	return errors.Join(errs...)
}

// Calls is how often this server has run a command.
func (s *Server) Calls(t testing.TB, command string) int {
	t.Helper()
	info, err := s.Client().Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatalf("redistest: the statistics of %s: %v", s.Addr(), err)
	}
	_, rest, found := strings.Cut(info, "cmdstat_"+command+":calls=")
	if !found {
		return 0 // never
	}
	calls, _, _ := strings.Cut(rest, ",")
	n, err := strconv.Atoi(calls)
	if err != nil {
		t.Fatalf("redistest: the statistics of %s: %v", s.Addr(), err)
	}
	return n
}
