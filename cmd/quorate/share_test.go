package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

func TestSharedAndExclusive(t *testing.T) {
	startNodes(t, 3)
	hold := start(t, "lock", "y", "--shared", "--", "sh", "-c", "echo in; sleep 30")
	hold.says("in")
	p := startTry(t, "lock", "y", "--shared", "--wait", "0", "--", "echo", "beside it")
	assert.Equal(t, 0, p.status(), p.err.String())
	p = startTry(t, "lock", "y", "--exclusive", "--wait", "0", "--", "echo", "never")
	assert.Equal(t, cli.ExitHeld, p.status())
	assert.Empty(t, p.out.String())
	p = startTry(t, "lock", "y", "--wait", "0", "--", "echo", "never")
	assert.Equal(t, cli.ExitUsage, p.status(), "a name is one or the other")
	assert.Contains(t, p.err.String(), "in use as an rwmutex, not as a mutex")
	p = start(t, "lock", "y", "--shared", "--exclusive", "--", "echo", "never")
	assert.Equal(t, cli.ExitUsage, p.status())
}

func TestSem(t *testing.T) {
	startNodes(t, 3)
	for range 2 {
		start(t, "sem", "s", "-n", "3", "--", "sh", "-c", "echo in; sleep 30").says("in")
	}
	p := startTry(t, "sem", "s", "-n", "3", "--weight", "2", "--wait", "0", "--", "echo", "never")
	assert.Equal(t, cli.ExitHeld, p.status())
	assert.Contains(t, p.err.String(), "fewer than 2 of the 3 permits")
	p = startTry(t, "sem", "s", "-n", "3", "--wait", "0", "--", "sh", "-c",
		`test "$QUORATE_TOKEN" -gt 0 && echo third`)
	assert.Equal(t, 0, p.status(), p.err.String())
	assert.Equal(t, "third\n", p.out.String())
	p = startTry(t, "sem", "s", "-n", "4", "--wait", "0", "--", "echo", "never")
	assert.Equal(t, cli.ExitUsage, p.status())
	assert.Contains(t, p.err.String(), "in use as a semaphore of 3 permits, not as a semaphore of 4 permits")
	for _, args := range [][]string{
		{"sem", "s", "--", "true"},
		{"sem", "s", "-n", "0", "--", "true"},
		{"sem", "s", "-n", "2", "--weight", "3", "--", "true"},
		{"sem", "s", "-n", "2", "--weight", "0", "--", "true"},
	} {
		p := start(t, args...)
		assert.Equal(t, cli.ExitUsage, p.status(), args)
		assert.NotEmpty(t, p.err.String())
	}
}
