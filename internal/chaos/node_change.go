package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// What changes a node. The caller holds mu.

// off is how far the node's clock is ahead of the machine's.
func (n *node) off() time.Duration {
	return time.Until(n.server.Clock()).Round(time.Millisecond)
}

// setClock has the clock jump, and run at rate from there.
func (n *node) setClock(by time.Duration, rate float64) error {
	n.rate = rate
	return n.server.ShiftClock(by, rate)
}

// takeFiles restarts the server with a copy of another one's append-only file.
func (n *node) takeFiles(of *node) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.server.Kill(); err != nil {
		return err
	}
	const files = "appendonlydir"
	own := filepath.Join(n.server.Dir(), files)
	of.mu.Lock() // it is not killed meanwhile
	err := errors.Join(os.RemoveAll(own), os.CopyFS(own, os.DirFS(filepath.Join(of.server.Dir(), files))))
	of.mu.Unlock()
	return errors.Join(err, n.restart())
}

// empty does what an operator does with a copy of another node's data. Its
// files go as well: it would come back with that of the replication, or with a
// log whose end, a FLUSHALL, a power cut has taken away.
func (n *node) empty() error {
	err := n.server.Kill()
	for _, file := range []string{"dump.rdb", "appendonlydir"} {
		err = errors.Join(err, os.RemoveAll(filepath.Join(n.server.Dir(), file)))
	}
	return errors.Join(err, n.restart())
}

// insist tries to undo a fault, up to twenty times: on a busy machine a server
// may not answer in time.
func insist(undo func() error) (err error) {
	for range 20 {
		if err = undo(); err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return err
}

// restart starts the server again, up to three times: on a busy machine it may
// not answer in time, and a server that stays down until the end is a fault for
// which nothing is planned.
func (n *node) restart() (err error) {
	for range 3 {
		if err = n.server.Restart(); err == nil {
			return nil
		}
	}
	return err
}

// aofSize is the size of the file that the append-only log is being written to.
func (n *node) aofSize() (path string, size int64, err error) {
	err = filepath.WalkDir(filepath.Join(n.server.Dir(), "appendonlydir"), func(p string, d fs.DirEntry, err error) error {
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

// cut kills the server and takes from its log what it wrote in the last d, as a
// power cut does to what was not yet on the disk. The log ends within a
// command.
func (n *node) cut(ctx context.Context, d time.Duration) error {
	path, size, err := n.aofSize()
	if err != nil {
		return err
	}
	wait(ctx, d)
	if err := n.server.Kill(); err != nil {
		return err
	}
	return os.Truncate(path, max(0, size-3))
}
