package redistest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/testkit/process"
)

// The times of the Sentinels that StartSentinels starts.
const (
	sentinelDownAfter = 500 * time.Millisecond // a master that does not answer for so long is down
	sentinelFailover  = 3 * time.Second        // the bound of each step of a failover
)

// Guard says how Sentinels and servers are reached where that takes more than a
// port. The zero value is that of [StartSentinels].
type Guard struct {
	Password string      // of the Sentinels
	Ports    []string    // of the servers, with TLS
	TLS      *tls.Config // by which clients reach the Sentinels
	Lines    []string    // of the configuration of each Sentinel, with NAME for that of the master
}

// Sentinels watch over a cluster of which the first server is the master.
type Sentinels struct {
	Guard
	name  string
	dirs  []string
	procs []*process.Process
	addrs []string
	ports []net.PacketConn // reserved until the end
}

// StartSentinels makes servers 1, 2, … of c replicas of server 0, and starts
// three Sentinels that watch over them until the test has ended. It returns
// when a failover can succeed.
func StartSentinels(t testing.TB, c *Cluster, name string) *Sentinels {
	t.Helper()
	return StartGuarded(t, c, name, Guard{})
}

// StartGuarded is StartSentinels with passwords and TLS.
func StartGuarded(t testing.TB, c *Cluster, name string, g Guard) *Sentinels {
	t.Helper()
	s := &Sentinels{Guard: g, name: name}
	t.Cleanup(func() {
		for _, p := range s.procs {
			_ = p.Kill()
		}
		for _, r := range s.ports {
			_ = r.Close()
		}
		for _, dir := range s.dirs {
			_ = os.RemoveAll(dir)
		}
	})
	if err := s.start(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *Sentinels) start(ctx context.Context, c *Cluster) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	master := c.Node(0)
	if err := master.Client().ConfigSet(ctx, "repl-diskless-sync-delay", "0").Err(); err != nil {
		return err
	}
	port := strconv.Itoa(master.port)
	if s.TLS != nil {
		port = s.Ports[0]
	}
	for i := 1; i < c.Len(); i++ {
		if err := c.Node(i).Client().Do(ctx, "REPLICAOF", "127.0.0.1", port).Err(); err != nil {
			return err
		}
	}
	for i := 1; i < c.Len(); i++ {
		if err := AwaitReplica(ctx, c.Node(i).Client()); err != nil {
			return err
		}
	}
	for range 3 {
		if err := s.add(master, port); err != nil {
			return err
		}
	}
	return until(ctx, "the Sentinels know all", func() bool { return s.complete(ctx, c.Len()-1) })
}

// AwaitReplica waits until a replica has its master's data.
func AwaitReplica(ctx context.Context, replica *redis.Client) error {
	return until(ctx, "the replica is up to date", func() bool {
		return replica.InfoMap(ctx, "replication").Item("Replication", "master_link_status") == "up"
	})
}

func until(ctx context.Context, what string, cond func() bool) error {
	tick := time.NewTicker(startPoll)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("redistest: %s: %w", what, ctx.Err())
		}
	}
	return nil
}

// add starts a Sentinel.
func (s *Sentinels) add(master *Server, watched string) error {
	dir, err := os.MkdirTemp("", "redistest-")
	if err != nil {
		return err
	}
	s.dirs = append(s.dirs, dir)
	port, reservation, err := reservePort()
	if err != nil {
		return err
	}
	s.ports = append(s.ports, reservation)
	conf := filepath.Join(dir, "sentinel.conf")
	kind := "port"
	if s.TLS != nil {
		kind = "port 0\ntls-port"
	}
	text := fmt.Sprintf("bind 127.0.0.1\n%[7]s %[1]d\ndir %[2]s\nlogfile sentinel.log\nsentinel monitor %[3]s "+
		"127.0.0.1 %[4]s 2\nsentinel down-after-milliseconds %[3]s %[5]d\nsentinel failover-timeout %[3]s %[6]d\n",
		port, dir, s.name, watched, sentinelDownAfter.Milliseconds(), sentinelFailover.Milliseconds(), kind)
	text += strings.ReplaceAll(strings.Join(s.Lines, "\n"), "NAME", s.name) + "\n"
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		return err
	}
	p, err := process.Start(exec.Command(master.binary, conf, "--sentinel"))
	if err != nil {
		return err
	}
	s.procs = append(s.procs, p)
	s.addrs = append(s.addrs, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	return nil
}

// complete reports whether each Sentinel knows the others and the replicas.
func (s *Sentinels) complete(ctx context.Context, replicas int) bool {
	for i := range s.addrs {
		c := s.client(i)
		m, err := c.Master(ctx, s.name).Result()
		_ = c.Close()
		if err != nil || m["num-slaves"] != strconv.Itoa(replicas) || m["num-other-sentinels"] != "2" ||
			m["flags"] != "master" {
			return false
		}
	}
	return true
}

func (s *Sentinels) client(i int) *redis.SentinelClient {
	return redis.NewSentinelClient(&redis.Options{Addr: s.addrs[i], Password: s.Password,
		TLSConfig: s.TLS, MaxRetries: -1})
}

// Kill ends a Sentinel permanently.
func (s *Sentinels) Kill(i int) error { return s.procs[i].Kill() }

// Addrs are those of the Sentinels.
func (s *Sentinels) Addrs() []string { return s.addrs }

// URL is that of the set, as [redis.ParseFailoverURL] takes it.
func (s *Sentinels) URL() string {
	scheme := "redis://"
	if s.TLS != nil {
		scheme = "rediss://"
	}
	if s.Password != "" {
		scheme += ":" + s.Password + "@"
	}
	return scheme + s.addrs[0] + "?master_name=" + s.name + "&addr=" + strings.Join(s.addrs[1:], "&addr=")
}

// Master is the address of the master that the first Sentinel names which
// answers.
func (s *Sentinels) Master(ctx context.Context) (string, error) {
	for i := range s.addrs {
		c := s.client(i)
		at, err := c.GetMasterAddrByName(ctx, s.name).Result()
		_ = c.Close()
		if err == nil && len(at) == 2 {
			return net.JoinHostPort(at[0], at[1]), nil
		}
	}
	return "", errors.New("redistest: no Sentinel answers")
}
