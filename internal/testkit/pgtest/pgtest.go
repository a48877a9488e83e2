//go:build unix

// Package pgtest starts a PostgreSQL server for a test.
package pgtest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/testkit/process"
)

// programs is the folder with the programs of one installation: where Debian
// has them, or that of the path. It is empty where there is none.
func programs() string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if path, err := exec.LookPath("initdb"); err == nil {
		found = append([]string{path}, found...)
	}
	for _, path := range slices.Backward(found) {
		dir := filepath.Dir(path)
		if _, err := os.Stat(filepath.Join(dir, "pg_isready")); err == nil {
			return dir
		}
	}
	return ""
}

// unprivileged is the user to run the server as: PostgreSQL refuses root.
func unprivileged() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, err
	}
	uid, _ := strconv.ParseUint(u.Uid, 10, 32)
	gid, _ := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// Start starts a server on loopback with an empty database, and returns its
// URL. If PostgreSQL is not installed, Start skips the test, or fails it in CI.
// The server ends with the test.
func Start(t testing.TB) (url string) {
	t.Helper()
	skip := t.Skip
	if os.Getenv("CI") != "" {
		skip = t.Fatal
	}
	bin := programs()
	if bin == "" {
		skip("PostgreSQL is not installed")
	}
	as, err := unprivileged()
	if err != nil {
		skip("PostgreSQL does not run as root, and there is no user postgres:", err)
	}
	dir, err := os.MkdirTemp("", "quorate-pg-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if as != nil {
		if err := os.Chown(dir, int(as.Uid), int(as.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	run := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(bin, name), args...)
		cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Credential: as}
		return cmd
	}
	data := filepath.Join(dir, "data")
	if out, err := run("initdb", "-D", data, "-U", "quorate", "-A", "trust",
		"--no-sync").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v: %s", err, out)
	}
	port := free(t)
	server := run("postgres", "-D", data, "-h", "127.0.0.1", "-p", port, "-k", dir, "-c", "fsync=off", "-c",
		"client_connection_check_interval=100ms")
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	server.Stderr = log
	p, err := process.Start(server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGQUIT) // at once, with the processes of its connections
		select {
		case <-p.Exited():
		case <-time.After(time.Minute):
			_ = p.Kill()
		}
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if run("pg_isready", "-q", "-h", "127.0.0.1", "-p", port).Run() == nil {
			return fmt.Sprintf("postgres://quorate@127.0.0.1:%s/postgres?sslmode=disable", port)
		}
		if time.Now().After(deadline) {
			said, _ := os.ReadFile(log.Name())
			t.Fatalf("PostgreSQL does not answer: %s", said)
		}
	}
}

func free(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}
