package redistest

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// ErrNoCompiler says that there is no C compiler, or no Linux, without which a
// server cannot have a clock or a disk of its own.
var ErrNoCompiler = errors.New("there is no C compiler on Linux, which WithClock and WithDisk need: install " +
	"one with " +
	"`apt-get install gcc libc6-dev` (Debian, Ubuntu) or `dnf install gcc` (Fedora)")

// machine stands between a server and the kernel, and is the server's clock and
// its disk. It is C, as redis-server is.
//
//go:embed machine.c.txt
var machine []byte

// compiler is the C compiler: gcc's name, or another's.
const compiler = "cc"

// compiled is the library that machine becomes, made once by each process.
var compiled = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "redistest-")
	if err != nil {
		return nil, fmt.Errorf("redistest: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	library := filepath.Join(dir, "machine.so")
	cmd := exec.Command(compiler, "-O2", "-shared", "-fPIC", "-x", "c", "-o", library, "-", "-ldl")
	cmd.Stdin = bytes.NewReader(machine)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("redistest: %s cannot compile a clock and a disk: %w\n%s", compiler, err, out)
	}
	return os.ReadFile(library)
})

// host is what a server runs on, with a clock and a disk or without.
type host struct {
	dir   string // of the server; set once by open
	clock clock  // the zero value is the machine's; guarded by the server's mu
}

// clock is a server's wall clock: the machine's, plus offset at the moment
// since, and from then on faster by gains. Like a machine's it does not care
// whether the server runs.
//
// Invariant: since is without a monotonic reading, so that the machine's wall
// clock counts, here as in the server.
type clock struct {
	changes uint64
	offset  time.Duration
	gains   float64
	since   time.Time
}

// now is what the clock shows at t.
func (c *clock) now(t time.Time) time.Time {
	return t.Add(c.offset + time.Duration(float64(t.Sub(c.since))*c.gains))
}

func (h *host) machineDir() string { return filepath.Join(h.dir, "machine") }
func (h *host) library() string    { return filepath.Join(h.machineDir(), "machine.so") }
func (h *host) page() string       { return filepath.Join(h.machineDir(), "page") }

// Where the library reads in the page: how often the clock has been set, what
// it shows, in two places that take turns, and the delay of the disk.
const (
	changesAt = 0
	shownAt   = 8
	shownSize = 24
	delayAt   = shownAt + 2*shownSize
	pageSize  = delayAt + 8
)

// openMachine makes a clock that is right and a disk that is fast.
func (h *host) openMachine() error {
	if _, err := exec.LookPath(compiler); err != nil || runtime.GOOS != "linux" {
		return fmt.Errorf("redistest: %w", ErrNoCompiler)
	}
	library, err := compiled()
	if err != nil {
		return err
	}
	err = errors.Join(os.RemoveAll(h.machineDir()), os.Mkdir(h.machineDir(), 0o700))
	if err == nil {
		err = errors.Join(os.WriteFile(h.library(), library, 0o600),
			os.WriteFile(h.page(), make([]byte, pageSize), 0o600))
	}
	if err != nil {
		return fmt.Errorf("redistest: %w", err)
	}
	return nil
}

// write changes the page.
func (h *host) write(at int64, values ...uint64) error {
	f, err := os.OpenFile(h.page(), os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("redistest: %w", err)
	}
	var text []byte
	for _, v := range values {
		text = binary.NativeEndian.AppendUint64(text, v)
	}
	_, err = f.WriteAt(text, at)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("redistest: %w", err)
	}
	return nil
}

// load has a server that is about to be started load the library.
func (h *host) load(cmd *exec.Cmd) error {
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "LD_PRELOAD=") })
	cmd.Env = append(cmd.Env, "LD_PRELOAD="+h.library(), "REDISTEST_MACHINE="+h.machineDir())
	return h.settle()
}

// settle takes it that all that an earlier life has left to the kernel is on
// the disk now.
func (h *host) settle() error {
	return h.logs(func(path string, size int64) error {
		return os.WriteFile(h.syncedFile(path), binary.NativeEndian.AppendUint64(nil, uint64(size)), 0o600)
	})
}

// syncedFile is where the library writes down how much of a file is on the
// disk.
func (h *host) syncedFile(path string) string {
	return filepath.Join(h.machineDir(), filepath.Base(path)+".synced")
}

// logs calls f for each file that the server appends to.
func (h *host) logs(f func(path string, size int64) error) error {
	return filepath.WalkDir(filepath.Join(h.dir, "appendonlydir"),
		func(path string, d fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil || !strings.HasSuffix(path, ".incr.aof"):
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			return f(path, info.Size())
		})
}
