// Package script is what runs on a node: the Lua scripts, the bytes of the
// commands that call them, and a distrustful reading of what comes back. It
// sends nothing and decides nothing.
//
//	protocol.Request   AppendCommand, or AppendItem and AppendBatch   EVALSHA
//	answer of a node   Decode, DecodeRecord or ReplyItem              protocol.Answer
//	message            ParsePush                                      protocol.Push
//
// internal/model says what the scripts mean. internal/script/conformance holds
// each of them to the model. scripts/open.lua and queue.lua say how they keep
// the state in Redis.
//
// Three invariants hold. No script stops half-way through its writes: a key
// that may be of another type is read before it is written, and errors of
// PUBLISH are caught. One call blocks a server for a bounded time, whatever the
// length of a queue: see model.Portion. An answer that breaks the format counts
// as no answer.
//
// Everything here is safe for concurrent use: the scripts are built once, and
// the functions keep no state.
package script

import (
	"crypto/sha1" //nolint:gosec // the name that Redis gives to a script
	"embed"
	"encoding/hex"
	"strings"
	"sync"
)

// Script is one script as it is loaded into a node. SHA is the name by which
// EVALSHA calls it, so it changes with the source.
type Script struct {
	Name   string
	Source string
	SHA    string
}

//go:embed scripts/*.lua
var files embed.FS

// library is all scripts. They are built at their first use: a program that
// imports the package and connects to no node does not pay for them.
type library struct {
	enter, beat, leave      Script // enter is join and settle: they differ in a flag
	mark, inspect, set      Script
	record, caughtUp, batch Script
}

var built = sync.OnceValue(func() *library {
	return &library{
		build("enter"), build("beat"), build("leave"),
		build("mark"), build("inspect"), build("set"),
		build("record"), build("caughtup"), build("batch"),
	}
})

// All returns every script, to be loaded into a node that does not know them
// yet.
func All() []Script {
	l := built()
	return []Script{l.enter, l.beat, l.leave, l.mark, l.inspect, l.set, l.record, l.caughtUp, l.batch}
}

// build reads a script and puts the shared parts where it asks for them with
// "--@ name".
func build(name string) Script {
	source := read(name)
	sum := sha1.Sum([]byte(source)) //nolint:gosec // see above
	return Script{Name: name, Source: source, SHA: hex.EncodeToString(sum[:])}
}

// read returns the source of a script or a shared part, without comments.
func read(name string) string {
	text, err := files.ReadFile("scripts/" + name + ".lua")
	if err != nil {
		panic(err) // embedded: a mistyped name in this package
	}
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		if part, ok := strings.CutPrefix(strings.TrimSpace(line), "--@ "); ok {
			strip(&b, read(part))
			continue
		}
		strip(&b, line)
	}
	return b.String()
}

// strip leaves out comment lines and indentation, a third of the source. So a
// comment line costs a node nothing, and changes no script's SHA.
func strip(b *strings.Builder, source string) {
	for line := range strings.Lines(source) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--") {
			b.WriteString(line)
			b.WriteByte('\n')
		}
	}
}
