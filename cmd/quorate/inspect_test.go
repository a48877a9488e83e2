package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// crowd starts three nodes and six processes that want one lock, and returns
// the nodes and the holder.
func crowd(t *testing.T) (*redistest.Cluster, *proc) {
	t.Helper()
	c := redistest.Start(t, 3)
	t.Setenv("QUORATE_NODES", strings.Join(c.URLs(), ","))
	status, _, errs := call("bootstrap", "--new")
	require.Equal(t, 0, status, errs)
	holder := start(t, "lock", "job", "--owner", "first", "--note", "order 4711, “late”", "--",
		"sh", "-c", "echo in; sleep 60")
	holder.says("in")
	for i := range 5 {
		start(t, "lock", "job", "--owner", "waiter-"+strconv.Itoa(i), "--", "sleep", "60")
	}
	return c, holder
}

// Six processes want one lock, the holder is stopped, and one node is dead. One
// command shows all three.
func TestInspectShowsWhatIsWrong(t *testing.T) {
	c, holder := crowd(t)
	var report struct {
		Kind    string
		Holders []struct {
			PID   int `json:"pid"`
			Label string
			Token string
			Left  float64 `json:"left_seconds"`
		}
		Waiters []struct{ Label string }
		Nodes   []struct {
			Node, Err  string
			Recovering float64 `json:"recovering_seconds"`
			Differs    []string
		}
	}
	look := func() (status int) {
		status, out, errs := call("inspect", "job", "--json")
		require.NoError(t, json.Unmarshal([]byte(out), &report), "%s%s", out, errs)
		return status
	}
	// Bootstrap returns once a majority is ready. What is asked of two
	// nodes needs both.
	ready := func() bool {
		for _, n := range report.Nodes {
			if n.Err != "" || n.Recovering > 0 {
				return false
			}
		}
		return len(report.Nodes) == 3
	}
	require.True(t, e2e.Eventually(func() bool { return look() == 0 && len(report.Waiters) == 5 && ready() }),
		"%+v", &report)
	holder.signal(syscall.SIGSTOP)
	require.NoError(t, c.Node(2).Kill())
	require.Equal(t, 0, look(), "%+v", &report)
	assert.Equal(t, "mutex", report.Kind)
	require.Len(t, report.Holders, 1, "though it is stopped")
	assert.Equal(t, holder.cmd.Process.Pid, report.Holders[0].PID)
	assert.Equal(t, "first", report.Holders[0].Label)
	token, err := strconv.ParseUint(report.Holders[0].Token, 10, 64)
	require.NoError(t, err)
	assert.Greater(t, token, uint64(1)<<53)
	assert.Less(t, report.Holders[0].Left, 8.0)
	assert.Len(t, report.Waiters, 5)
	assert.NotEmpty(t, report.Nodes[2].Err)

	_, out, errs := call("inspect", "job")
	t.Log("\n" + out)
	assert.Contains(t, out, fmt.Sprintf(`"job": mutex, held by process %d on `, holder.cmd.Process.Pid))
	assert.Contains(t, out, `(first), note "order 4711, “late”", 5 waiting`)
	assert.Contains(t, out, "waits 5")
	assert.Contains(t, out, c.Node(2).Addr()+"  -", errs)

	status, out, errs := call("ls", "jo*")
	assert.Equal(t, 0, status, errs)
	assert.Contains(t, out, `"job"  mutex  process `+strconv.Itoa(holder.cmd.Process.Pid))
	assert.Contains(t, out, `note "order 4711, “late”"`)

	// A majority is gone: the status says so, and what each node says.
	require.NoError(t, c.Node(1).Kill())
	status, out, errs = call("inspect", "job")
	assert.Equal(t, cli.ExitNoQuorum, status, errs)
	assert.Contains(t, out, "the holder is unknown")
	assert.Contains(t, out, c.Node(1).Addr()+"  -")
	status, _, _ = call("ls")
	assert.Equal(t, cli.ExitNoQuorum, status)
	holder.signal(syscall.SIGCONT)
}

// What programs read has numbers of seconds, and tokens as strings.
func TestJSON(t *testing.T) {
	ns := startNodes(t, 3)
	p := start(t, "once", "x", "--", "true")
	require.Equal(t, 0, p.status(), &p.err)
	parse := func(args ...string) (fields map[string]any) {
		t.Helper()
		_, out, errs := call(args...)
		require.NoError(t, json.Unmarshal([]byte(out), &fields), "%s%s", out, errs)
		return fields
	}
	s := parse("once", "x", "--status", "--json")
	assert.Equal(t, "done", s["state"])
	assert.IsType(t, "", s["token"])
	assert.NotContains(t, s, "until", "it is kept forever")
	when, err := time.Parse(time.RFC3339Nano, s["when"].(string))
	require.NoError(t, err)
	assert.WithinDuration(t, time.Now(), when, time.Minute)
	assert.Equal(t, "once", parse("inspect", "x", "--json")["kind"])
	assert.Equal(t, "x", parse("ls", "--json")["name"], "a line for each name")

	lead := start(t, "leader", "l", "--id", "me", "--", "sh", "-c", "echo in; sleep 60")
	lead.says("in")
	l := parse("leader", "l", "--who", "--json")
	assert.Equal(t, "me", l["id"])
	assert.IsType(t, "", l["term"])
	assert.IsType(t, 0.0, l["left_seconds"])

	ns.Stop(2)
	for _, args := range [][]string{{"check", "--json"}, {"members", "list", "--json"}} {
		r := parse(args...)
		nodes := r["nodes"].([]any)
		require.Len(t, nodes, 3, args)
		assert.NotContains(t, nodes[0], "err")
		assert.NotEmpty(t, nodes[2].(map[string]any)["err"])
		assert.Equal(t, 20.0, r["set"].(map[string]any)["guard_seconds"])
		assert.Equal(t, 2.0, r["ready"])
	}
	for _, args := range [][]string{{"once", "x", "--json", "--", "true"},
		{"leader", "x", "--json", "--", "true"}, {"inspect"}, {"inspect", ""}, {"ls", "a", "b"}} {
		status, _, errs := call(args...)
		assert.Equal(t, cli.ExitUsage, status, "%v: %s", args, errs)
	}
}

// A holder that runs is out at once. One that is stopped loses the name with
// its lease.
func TestEvict(t *testing.T) {
	c := redistest.Start(t, 3)
	t.Setenv("QUORATE_NODES", strings.Join(c.URLs(), ","))
	status, _, errs := call("bootstrap", "--new")
	require.Equal(t, 0, status, errs)
	holder := start(t, "lock", "job", "--owner", "first", "--", "sh", "-c", "echo in; sleep 60")
	holder.says("in")
	next := start(t, "lock", "job", "--owner", "second", "--", "sh", "-c", "echo next; sleep 60")
	token := func(label string) (token string) {
		t.Helper()
		require.Eventually(t, func() bool {
			var r struct {
				Holders []struct{ Label, Token string }
			}
			_, out, _ := call("inspect", "job", "--json")
			if json.Unmarshal([]byte(out), &r) != nil || len(r.Holders) != 1 || r.Holders[0].Label != label {
				return false
			}
			token = r.Holders[0].Token
			return true
		}, 20*time.Second, 50*time.Millisecond)
		return token
	}
	for _, args := range [][]string{{"evict", "job"}, {"evict", "job", "x"}, {"evict", "", "1"}} {
		status, _, errs = call(args...)
		assert.Equal(t, cli.ExitUsage, status, "%v: %s", args, errs)
	}
	status, _, errs = call("evict", "job", "1024")
	assert.Equal(t, 1, status, errs)
	first := token("first")
	status, out, errs := call("evict", "job", first, "--json")
	require.Equal(t, 0, status, errs)
	var r struct {
		Name, Token string
		Took        float64 `json:"took_seconds"`
	}
	require.NoError(t, json.Unmarshal([]byte(out), &r), out)
	assert.Equal(t, [2]string{"job", first}, [2]string{r.Name, r.Token})
	assert.Less(t, r.Took, 5.0, "no lease has ended")
	assert.Equal(t, cli.ExitLost, holder.status())
	next.says("next")

	next.signal(syscall.SIGSTOP)
	status, out, errs = call("evict", "job", token("second"))
	require.Equal(t, 0, status, errs)
	assert.Contains(t, out, "is over")
	next.signal(syscall.SIGCONT)
	assert.Equal(t, cli.ExitLost, next.status())
}
