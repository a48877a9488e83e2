package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/testkit/redistest"
)

// ErrNoCounter means that instructions cannot be counted on this machine.
var ErrNoCounter = errors.New("callgrind is not installed: apt-get install valgrind")

// Counted is one server whose instructions in user mode are counted. The count
// depends neither on the machine nor on its load. The server is fifty times
// slower than usual.
type Counted struct {
	Nodes
	out   string // prefix of callgrind's output files
	pid   string
	dumps int
	idle  float64 // instructions per second while it is idle
}

// Count starts the server.
func Count(ctx context.Context) (*Counted, error) {
	if _, err := exec.LookPath("callgrind_control"); err != nil {
		return nil, ErrNoCounter
	}
	dir, err := os.MkdirTemp("", "counted-")
	if err != nil {
		return nil, err
	}
	c := &Counted{out: filepath.Join(dir, "out")}
	// The server's own chores run once a second instead of ten times. It keeps no slow log, because under
	// callgrind every long request would be in it.
	cluster, err := redistest.Run(1, redistest.WithArgs("--hz", "1", "--slowlog-log-slower-than", "-1"),
		redistest.Under("valgrind", "--tool=callgrind", "--callgrind-out-file="+c.out))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	c.Nodes = Direct(cluster)
	info, err := c.Node(0).Client().InfoMap(ctx, "server").Result()
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.pid = info["Server"]["process_id"]
	const rest = 3 * time.Second
	if c.idle, err = c.Of(ctx, func() error { time.Sleep(rest); return nil }); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.idle /= rest.Seconds()
	return c, nil
}

// Close ends the server.
func (c *Counted) Close() error {
	return errors.Join(c.Nodes.Close(), os.RemoveAll(filepath.Dir(c.out)))
}

// Of returns how many instructions the server has carried out because of f. It
// subtracts the server's periodic chores.
func (c *Counted) Of(ctx context.Context, f func() error) (float64, error) {
	if err := c.control(ctx, "--zero"); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := f(); err != nil {
		return 0, err
	}
	if err := c.control(ctx, "--dump"); err != nil {
		return 0, err
	}
	chores := c.idle * time.Since(began).Seconds()
	c.dumps++
	text, err := os.ReadFile(c.out + "." + strconv.Itoa(c.dumps))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), "\ntotals: ")
	total, _, _ := strings.Cut(rest, "\n")
	counted, err := strconv.ParseFloat(total, 64)
	return counted - chores, err
}

func (c *Counted) control(ctx context.Context, what string) error {
	said, err := exec.CommandContext(ctx, "callgrind_control", what, c.pid).CombinedOutput()
	if err != nil {
		return fmt.Errorf("callgrind_control %s: %w: %s", what, err, said)
	}
	return nil
}
