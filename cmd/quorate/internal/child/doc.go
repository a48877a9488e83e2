// Package child runs the command that a lock is held for. The command has a
// process group of its own, which ends with this process, however this one
// ends (guard_unix.go), and begins only when that is sure (gate_unix.go).
package child
