package main

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cmd/quorate/internal/board"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// documentedRights returns what docs/reference/security.md gives the user "app", word for
// word, behind its name.
func documentedRights(t *testing.T) []any {
	t.Helper()
	text, err := os.ReadFile("../../docs/reference/security.md")
	require.NoError(t, err)
	_, line, found := strings.Cut(string(text), "ACL SETUSER app ")
	require.True(t, found)
	line, _, _ = strings.Cut(line, "\n")
	var rights []any
	for _, word := range strings.Fields(line) {
		rights = append(rights, word)
	}
	return rights
}

// limitedUser makes a user with these rights and more on each server, and
// returns the URLs by which it connects.
func limitedUser(t *testing.T, c *redistest.Cluster, user string, more ...any) (urls []string) {
	t.Helper()
	for i := range c.Len() {
		rules := slices.Concat([]any{"ACL", "SETUSER", user}, documentedRights(t), more)
		require.NoError(t, c.Node(i).Client().Do(t.Context(), rules...).Err())
		urls = append(urls,
			(&url.URL{Scheme: "redis", User: url.UserPassword(user, "password"), Host: c.Node(i).Addr()}).String())
	}
	return urls
}

// commandPaths returns each command of the program that users see.
func commandPaths(cmd *cobra.Command) (paths []string) {
	for _, c := range cmd.Commands() {
		if c.Hidden || c.Name() == "help" || c.Name() == "completion" {
			continue
		}
		if c.HasSubCommands() {
			paths = append(paths, commandPaths(c)...)
		} else {
			paths = append(paths, strings.TrimPrefix(c.CommandPath(), "quorate "))
		}
	}
	return paths
}

// Each command does its work for a user that has the rights which the
// documentation gives, and no other: on real servers, with each key below
// "quorate:{" or among the user's own names.
func TestCommandsWithTheDocumentedRights(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 5)
	urls := limitedUser(t, c, "app")
	operators := limitedUser(t, c, "operator", "+config|get", "+bgsave")
	ran := map[string]bool{"nodes": true, "demo": true, "version": true} // they reach no server of the user
	note := func(args []string) {
		for _, path := range commandPaths(rootCommand()) {
			words := strings.Fields(path)
			ran[path] = ran[path] || len(args) >= len(words) && slices.Equal(args[:len(words)], words)
		}
	}
	nodes := func(urls []string, args []string) []string {
		note(args)
		at := slices.Index(append(args, "--"), "--")
		flags := []string{"--nodes", strings.Join(urls, ",")}
		if at < len(args) { // it holds something
			flags = append(flags, "--ttl", "1s")
		}
		return slices.Concat(args[:at], flags, args[at:])
	}
	list := urls[:3]
	run := func(args ...string) string {
		t.Helper()
		status, out, errs := call(nodes(list, args)...)
		require.Equal(t, 0, status, "%v: %s%s", args, out, errs)
		assert.NotContains(t, errs, "NOPERM", "%v", args)
		return out
	}
	run("bootstrap", "--new", "--guard", "3s", "--skew", "10ms")
	for _, args := range [][]string{
		{"check"}, {"members", "list"}, {"ls"}, {"lock", "job:a", "--", "true"},
		{"lock", "job:a", "--shared", "--", "true"},
		{"sem", "job:s", "-n", "2", "--", "true"}, {"once", "job:o", "--", "true"},
		{"once", "job:o", "--", "false"}, {"leader", "job:l", "--", "true"},
	} {
		if args[0] == "lock" && slices.Contains(args, "--shared") {
			args[1] = "job:rw"
		}
		run(args...)
	}
	ledger := filepath.Join(t.TempDir(), "ledger")
	every := start(t,
		nodes(list, []string{"every", "job:e", "100ms", "--", "sh", "-c", `echo x >>"$0"`, ledger})...)
	fileWith(t, ledger, 2)
	every.signal(syscall.SIGTERM)
	assert.Equal(t, 128+15, every.status(), &every.err)

	holder := start(t, nodes(list, []string{"lock", "job:held", "--owner", "first", "--note", "order 4711",
		"--", "sh", "-c", "echo in; sleep 60"})...)
	holder.says("in")
	assert.Contains(t, run("ls"), "job:held")
	ui := start(t, nodes(list, []string{"ui", "--every", "100ms"})...)
	ui.says("token=")
	views(t, strings.TrimSpace(ui.out.String()))("the hold", func(v *board.View) bool {
		return v.Ready == 3 && len(v.Problems) == 0 && slices.ContainsFunc(v.Names, func(n board.Row) bool {
			return n.Name == "job:held" && len(n.Holders) == 1 && strings.Contains(n.Holders[0].Process, "order 4711")
		})
	})
	ui.signal(syscall.SIGINT)
	assert.Equal(t, 0, ui.status(), &ui.err)
	top := startOnTerminal(t, nodes(list, []string{"top", "--every", "100ms"})...)
	top.shows("job:held mutex process")
	top.press("q")
	assert.Equal(t, 0, top.status())
	watch := start(t, nodes(list, []string{"watch", "job:held"})...)
	watch.says(`(first), note "order 4711", token `)
	watch.signal(syscall.SIGINT)
	assert.Equal(t, 0, watch.status(), &watch.err)
	var seen struct{ Holders []struct{ Token string } }
	require.NoError(t, json.Unmarshal([]byte(run("inspect", "job:held", "--json")), &seen))
	require.Len(t, seen.Holders, 1)
	run("evict", "job:held", seen.Holders[0].Token)
	assert.NotEqual(t, 0, holder.status())

	run("members", "add", urls[3], urls[4])
	run("members", "remove", c.Node(4).Addr(), c.Node(3).Addr(), "--yes")
	run("members", "replace", c.Node(2).Addr(), urls[3])
	run("members", "move", c.Node(3).Addr(), "localhost:"+c.Node(3).Addr()[len("127.0.0.1:"):])
	run("members", "set", "--guard", "4s")
	run("members", "undo")
	list = operators[:2]
	assert.NotContains(t, run("members", "add", operators[4]), "unknown")
	run("members", "undo")
	run("lock", "job:a", "--", "true")
	for _, path := range commandPaths(rootCommand()) {
		assert.True(t, ran[path], "%q is not tested", path)
	}
}
