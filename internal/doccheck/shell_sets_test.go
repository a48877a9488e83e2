package doccheck

import (
	"bufio"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// bootstraps: brand-new nodes vote after the command.
func bootstraps(t *testing.T, b block) {
	urls := redistest.Start(t, 3).URLs()
	at := strings.NewReplacer("redis://lock-a:6379", urls[0], "redis://lock-b:6379", urls[1],
		"redis://lock-c:6379", urls[2])
	p := newPlace(t, urls...)
	p.run("! quorate check")
	p.run(at.Replace(b.text))
	p.run("quorate check --all")
}

// short has the command take the shortest guard time that it accepts.
func (p *place) short() {
	p.t.Helper()
	require.NoError(p.t, os.WriteFile(filepath.Join(p.dir, "quorate.yaml"), []byte("guard: 6s\n"), 0o600))
	p.env = []string{"QUORATE_CONFIG=quorate.yaml"}
	p.run("quorate bootstrap --new")
}

// replaces: the set has the new node instead of the old one.
func replaces(t *testing.T, b block) {
	c := redistest.Start(t, 4)
	urls := c.URLs()
	p := newPlace(t, urls[:3]...)
	p.short()
	script := strings.NewReplacer("lock-c:6379", urls[2], "lock-d:6379", urls[3]).Replace(b.text)
	p.run(script)
	p.nodes = []string{urls[0], urls[1], urls[3]}
	// On a busy machine a node may not answer in time.
	assert.Contains(t, p.run("until quorate members list; do sleep 0.2; done"), c.Node(3).Addr()+"  member")
}

// votes reports whether the guard time of a marker's node is over: it has the
// moment at which that began, in milliseconds, and its length.
func votes(marker string) bool {
	fields := strings.Fields(marker)
	if len(fields) < 4 {
		return false
	}
	began, err := strconv.ParseInt(fields[1], 10, 64)
	guard, failed := strconv.ParseInt(fields[3], 10, 64)
	return err == nil && failed == nil && began+guard <= time.Now().UnixMilli()
}

// restarts: no node is restarted before the one before it is ready again.
func restarts(t *testing.T, b block) {
	c := redistest.Start(t, 3)
	p := newPlace(t, c.URLs()...)
	p.short()
	ask, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ask.Close()
	var restarted []string
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			conn, err := ask.Accept()
			if err != nil {
				return
			}
			host, _ := bufio.NewReader(conn).ReadString('\n')
			host = strings.TrimSpace(host)
			for i := range c.Len() {
				assert.True(t, votes(e2e.Marker(t.Context(), c.Node(i))),
					"before %s is restarted, node %d votes", host, i)
			}
			assert.NoError(t, c.Node(int(host[len(host)-1]-'a')).Restart())
			restarted = append(restarted, host)
			_, _ = conn.Write([]byte("done\n"))
			_ = conn.Close()
		}
	}()
	p.program("bin/ssh", `[ "${*:2}" = "sudo systemctl restart redis-server" ]
exec 3<>/dev/tcp/`+strings.Replace(ask.Addr().String(), ":", "/", 1)+`
echo "$1" >&3
read -r answer <&3
[ "$answer" = done ]
`)
	p.run(b.text)
	_ = ask.Close()
	<-served
	assert.Equal(t, []string{"lock-a", "lock-b", "lock-c"}, restarted)
}

// consecutive are three ports that are free, one after the other.
func consecutive(t *testing.T) (ports [3]string) {
	t.Helper()
	for first := 11000 + rand.N(10000); ; first += 3 {
		free := true
		for i := range ports {
			ports[i] = strconv.Itoa(first + i)
			l, err := net.Listen("tcp", "127.0.0.1:"+ports[i])
			if free = free && err == nil; err == nil {
				_ = l.Close()
			}
		}
		if free {
			return ports
		}
	}
}
