package redistest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/internal/testkit/redistest"
)

// childEnv makes this test binary a program that runs a cluster and comes to a
// bad end.
const childEnv = "REDISTEST_CHILD"

func TestMain(m *testing.M) {
	if end := os.Getenv(childEnv); end != "" {
		child(end)
		return
	}
	goleak.VerifyTestMain(m)
}

// must panics where a test has no other way to fail: in a child, or in a value.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// child starts two servers, freezes one, prints their addresses, and waits for
// its end.
func child(end string) {
	c := must(redistest.Run(2))
	if err := c.Node(1).Stop(); err != nil {
		panic(err)
	}
	fmt.Println(strings.Join(c.Addrs(), " "))
	if end == "panic" {
		panic("as told")
	}
	select {}
}

func TestServersAreIndependentMasters(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	require.Equal(t, 3, c.Len())
	assert.Len(t, slices.Compact(slices.Sorted(slices.Values(c.Addrs()))), 3)
	assert.Len(t, c.URLs(), 3)

	ctx := t.Context()
	require.NoError(t, c.Node(0).Client().Set(ctx, "k", "v", 0).Err())
	for i := range c.Len() {
		s := c.Node(i)
		assert.True(t, s.Running())
		assert.Equal(t, "redis://"+s.Addr(), s.URL())
		assert.Contains(t, s.Log(), "Ready to accept connections")
		info := must(s.Client().Info(ctx, "replication").Result())
		assert.Contains(t, info, "role:master")
		assert.EqualValues(t, max(1-i, 0), s.Client().DBSize(ctx).Val())
	}
}

func TestKillAndRestartInMemory(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, 1).Node(0)
	ctx, addr := t.Context(), s.Addr()
	require.NoError(t, s.Client().Set(ctx, "k", "v", 0).Err())

	require.NoError(t, s.Kill())
	require.NoError(t, s.Kill(), "killing twice does nothing")
	assert.False(t, s.Running())
	assert.False(t, listening(addr))

	require.NoError(t, s.Restart())
	assert.True(t, s.Running())
	assert.Equal(t, addr, s.Addr())
	assert.ErrorIs(t, s.Client().Get(ctx, "k").Err(), redis.Nil)

	require.NoError(t, s.Restart(), "a running server is killed first")
	assert.NoError(t, s.Client().Ping(ctx).Err())
}

func TestAOFSurvivesKill(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, 1, redistest.WithAOF("always")).Node(0)
	ctx := t.Context()
	require.NoError(t, s.Client().Set(ctx, "k", "v", 0).Err())
	require.NoError(t, s.Kill())
	require.NoError(t, s.Restart())
	assert.Equal(t, "v", s.Client().Get(ctx, "k").Val())
	assert.Equal(t, "always", s.Client().ConfigGet(ctx, "appendfsync").Val()["appendfsync"])
}

func TestStopAndCont(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no SIGSTOP on Windows")
	}
	s := redistest.Start(t, 1).Node(0)
	require.NoError(t, s.Client().Ping(t.Context()).Err())
	require.NoError(t, s.Stop())
	assert.True(t, s.Running())

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.Error(t, s.Client().Ping(ctx).Err())

	require.NoError(t, s.Cont())
	require.NoError(t, s.Client().Ping(t.Context()).Err())

	require.NoError(t, s.Kill())
	assert.ErrorContains(t, s.Stop(), "not running")
	assert.ErrorContains(t, s.Cont(), "not running")
}

func TestRestartOfAStoppedServer(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no SIGSTOP on Windows")
	}
	s := redistest.Start(t, 1).Node(0)
	require.NoError(t, s.Stop())
	require.NoError(t, s.Restart())
	assert.NoError(t, s.Client().Ping(t.Context()).Err())
}

func TestPassword(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1, redistest.WithPassword("p@ss/w:rd"))
	assert.NoError(t, c.Node(0).Client().Ping(t.Context()).Err())

	withURL := redis.NewClient(must(redis.ParseURL(c.URLs()[0])))
	defer func() { _ = withURL.Close() }()
	assert.NoError(t, withURL.Ping(t.Context()).Err())

	without := redis.NewClient(&redis.Options{Addr: c.Addrs()[0]})
	defer func() { _ = without.Close() }()
	assert.ErrorContains(t, without.Ping(t.Context()).Err(), "NOAUTH")
}

func TestCloseStopsAndRemovesAll(t *testing.T) {
	t.Parallel()
	c, err := redistest.Run(3, redistest.WithArgs("--maxmemory", "4mb"))
	if errors.Is(err, redistest.ErrNotInstalled) {
		t.Skip(err)
	}
	require.NoError(t, err)
	assert.Equal(t, "4194304", c.Node(0).Client().ConfigGet(t.Context(), "maxmemory").Val()["maxmemory"])
	require.NoError(t, c.Node(0).Kill())
	if runtime.GOOS != "windows" {
		require.NoError(t, c.Node(1).Stop())
	}

	require.NoError(t, c.Close())
	require.NoError(t, c.Close(), "closing twice does nothing")
	for i := range c.Len() {
		s := c.Node(i)
		assert.False(t, s.Running())
		assert.False(t, listening(s.Addr()))
		assert.NoDirExists(t, s.Dir())
		assert.ErrorIs(t, s.Restart(), redistest.ErrClosed)
		assert.ErrorIs(t, s.Client().Ping(t.Context()).Err(), redis.ErrClosed)
	}
}

func TestRunSaysWhatIsWrong(t *testing.T) {
	_, err := redistest.Run(0)
	assert.ErrorContains(t, err, "at least one server")

	_, err = redistest.Run(2, redistest.WithArgs("--no-such-setting", "1"))
	if errors.Is(err, redistest.ErrNotInstalled) {
		t.Skip(err)
	}
	assert.ErrorContains(t, err, "no-such-setting")

	t.Setenv("PATH", t.TempDir())
	_, err = redistest.Run(1)
	require.ErrorIs(t, err, redistest.ErrNotInstalled)
	assert.ErrorContains(t, err, "apt-get install redis-server")
}

func TestMissingProgramSkipsOrFails(t *testing.T) {
	redisAlone := t.TempDir()
	if binary, err := exec.LookPath(redistest.Binary); err == nil {
		require.NoError(t, os.Symlink(binary, filepath.Join(redisAlone, redistest.Binary)))
	}
	linux := runtime.GOOS == "linux" // elsewhere no program gives a server a clock
	for _, c := range []struct {
		name, path, ci, require string
		skipped                 bool
	}{
		{name: "no redis, neither", path: t.TempDir(), skipped: true},
		{name: "no redis, CI", path: t.TempDir(), ci: "true"},
		{name: "no redis, required", path: t.TempDir(), require: "1"},
		{name: "no compiler, neither", path: redisAlone, skipped: true},
		{name: "no compiler, CI", path: redisAlone, ci: "true"},
		{name: "no compiler, required", path: redisAlone, require: "1", skipped: !linux},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("PATH", c.path)
			t.Setenv("CI", c.ci)
			t.Setenv(redistest.RequireEnv, c.require)
			rec := &recorder{TB: t}
			done := make(chan struct{})
			go func() { // Skip and Fatal end the goroutine
				defer close(done)
				redistest.Start(rec, 1, redistest.WithClock())
			}()
			<-done
			assert.Equal(t, c.skipped, rec.skipped)
			assert.Equal(t, !c.skipped, rec.failed)
		})
	}
}

type recorder struct {
	testing.TB
	skipped, failed bool
}

func (r *recorder) Skip(...any)  { r.skipped = true; runtime.Goexit() }
func (r *recorder) Fatal(...any) { r.failed = true; runtime.Goexit() }

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, 1).Node(0)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			assert.NoError(t, s.Kill())
			assert.NoError(t, s.Restart())
			s.Running()
			s.Client()
		})
	}
	wg.Wait()
	assert.True(t, s.Running() || s.Restart() == nil)
}

// The last resort: this process is gone before Close, and its servers go with
// it, also a frozen one.
func TestServersDieWithTheirProcess(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux kills the servers of a dead process")
	}
	if _, err := exec.LookPath(redistest.Binary); err != nil {
		t.Skip(redistest.ErrNotInstalled)
	}
	for _, end := range []string{"kill", "panic"} {
		t.Run(end, func(t *testing.T) {
			cmd := exec.Command(must(os.Executable()))
			cmd.Env = append(os.Environ(), childEnv+"="+end, "TMPDIR="+t.TempDir())
			out := must(cmd.StdoutPipe())
			require.NoError(t, cmd.Start())
			line, err := bufio.NewReader(out).ReadString('\n')
			if end == "kill" {
				_ = cmd.Process.Kill()
			}
			_ = cmd.Wait() // killed, or panicked
			require.NoError(t, err)

			addrs := strings.Fields(line)
			require.Len(t, addrs, 2)
			for _, addr := range addrs {
				assert.Eventually(t, func() bool { return !listening(addr) }, 5*time.Second, 10*time.Millisecond)
			}
		})
	}
}

func listening(addr string) bool {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}
