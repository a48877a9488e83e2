package fleet

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/chaos/record"
)

// Changes to a node. The caller holds mu.

// Off returns how far the node's clock is ahead of the machine's.
func (n *Node) Off() time.Duration {
	return time.Until(n.Server.Clock()).Round(time.Millisecond)
}

// SetClock makes the clock jump by the given time and then run at rate.
func (n *Node) SetClock(by time.Duration, rate float64) error {
	n.Rate = rate
	return n.Server.ShiftClock(by, rate)
}

// TakeFiles restarts the server with a copy of another one's append-only file.
func (n *Node) TakeFiles(of *Node) error {
	n.Mu.Lock()
	defer n.Mu.Unlock()
	if err := n.Server.Kill(); err != nil {
		return err
	}
	const files = "appendonlydir"
	own := filepath.Join(n.Server.Dir(), files)
	of.Mu.Lock() // so that the other node is not killed meanwhile
	err := errors.Join(os.RemoveAll(own), os.CopyFS(own, os.DirFS(filepath.Join(of.Server.Dir(), files))))
	of.Mu.Unlock()
	return errors.Join(err, n.Restart())
}

// Empty does what an operator does with a node that has a copy of another
// node's data. It deletes the files too: otherwise the node could come back
// with the file of the replication, or with a log from which a power cut has
// removed the final FLUSHALL.
func (n *Node) Empty() error {
	err := n.Server.Kill()
	for _, file := range []string{"dump.rdb", "appendonlydir"} {
		err = errors.Join(err, os.RemoveAll(filepath.Join(n.Server.Dir(), file)))
	}
	return errors.Join(err, n.Restart())
}

// Restart starts the server again, up to three times: on a busy machine it may
// not answer in time, and a server that stays down until the end is a fault for
// which nothing is planned.
func (n *Node) Restart() (err error) {
	for range 3 {
		if err = n.Server.Restart(); err == nil {
			return nil
		}
	}
	return err
}

// aofSize returns the file that the append-only log is being written to, and
// its size.
func (n *Node) aofSize() (path string, size int64, err error) {
	err = filepath.WalkDir(filepath.Join(n.Server.Dir(), "appendonlydir"),
		func(p string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(p, ".incr.aof") {
				return err
			}
			info, err := d.Info()
			if err == nil {
				path, size = p, info.Size()
			}
			return err
		})
	if err == nil && path == "" {
		err = errors.New("no append-only file")
	}
	return path, size, err
}

// Cut kills the server and removes from its log what it wrote in the last d, as
// a power cut removes what was not yet on disk. The log then ends in the middle
// of a command.
func (n *Node) Cut(ctx context.Context, d time.Duration) error {
	path, size, err := n.aofSize()
	if err != nil {
		return err
	}
	record.Wait(ctx, d)
	if err := n.Server.Kill(); err != nil {
		return err
	}
	return os.Truncate(path, max(0, size-3))
}
