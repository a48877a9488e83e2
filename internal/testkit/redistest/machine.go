package redistest

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// ErrNoCompiler says that there is no C compiler, or no Linux, without which a
// server cannot have a clock or a disk of its own.
var ErrNoCompiler = errors.New("there is no C compiler on Linux, which WithClock and WithDisk need: install one with " +
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

func (s *Server) machineDir() string { return filepath.Join(s.dir, "machine") }
func (s *Server) library() string    { return filepath.Join(s.machineDir(), "machine.so") }
func (s *Server) page() string       { return filepath.Join(s.machineDir(), "page") }

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
func (s *Server) openMachine() error {
	if _, err := exec.LookPath(compiler); err != nil || runtime.GOOS != "linux" {
		return fmt.Errorf("redistest: %w", ErrNoCompiler)
	}
	library, err := compiled()
	if err != nil {
		return err
	}
	err = errors.Join(os.RemoveAll(s.machineDir()), os.Mkdir(s.machineDir(), 0o700))
	if err == nil {
		err = errors.Join(os.WriteFile(s.library(), library, 0o600), os.WriteFile(s.page(), make([]byte, pageSize), 0o600))
	}
	if err != nil {
		return fmt.Errorf("redistest: %w", err)
	}
	return nil
}

// write changes the page.
func (s *Server) write(at int64, values ...uint64) error {
	f, err := os.OpenFile(s.page(), os.O_WRONLY, 0)
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
func (s *Server) load(cmd *exec.Cmd) error {
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "LD_PRELOAD=") })
	cmd.Env = append(cmd.Env, "LD_PRELOAD="+s.library(), "REDISTEST_MACHINE="+s.machineDir())
	return s.settle()
}

// loaded finds out whether it has: a loader says nothing about a library that
// it does not load.
func (s *Server) loaded() error {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", s.proc.Pid()))
	if err == nil && !bytes.Contains(maps, []byte(s.library())) {
		err = fmt.Errorf("%s has not loaded it", s.binary)
	}
	if err != nil {
		return fmt.Errorf("redistest: the clock and the disk of %s: %w", s.Addr(), err)
	}
	return nil
}
