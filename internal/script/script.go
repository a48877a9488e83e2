// Package script is the client's interface to the code that runs on a node: the
// Lua scripts, the bytes of the commands that call them, and a strict parser
// for their answers. It sends nothing and decides nothing.
//
//	protocol.Request   AppendCommand, or AppendItem and AppendBatch   EVALSHA
//	answer of a node   Decode, DecodeRecord or ReplyItem              protocol.Answer
//	message            ParsePush                                      protocol.Push
//
// internal/model defines what the scripts mean, and internal/script/conformance
// compares each script with the model. scripts/open.lua and queue.lua describe
// how the state is stored in Redis.
//
// Three invariants hold. No script stops half-way through its writes: it reads
// a key that may have another type before it writes the key, and it catches
// errors of PUBLISH. One call blocks a server for a bounded time, however long
// a queue is: see model.Portion. A malformed answer counts as no answer.
//
// Everything here is safe for concurrent use: the scripts are built once, and
// the functions keep no state.
package script

import (
	"crypto/sha1" //nolint:gosec // Redis names a script by its SHA-1
	"embed"
	"encoding/hex"
	"strings"
	"sync"
)

// Script is one script as it is loaded into a node. EVALSHA calls it by SHA,
// which changes with the source.
type Script struct {
	Name   string
	Source string
	SHA    string
}

//go:embed scripts/*.lua
var files embed.FS

// library holds all scripts. They are built on first use, so that a program
// that imports the package without connecting does not pay for them.
type library struct {
	enter, beat, leave      Script // enter does join and settle, which differ in a flag
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

// All returns every script, to load into a node that does not know them.
func All() []Script {
	l := built()
	return []Script{l.enter, l.beat, l.leave, l.mark, l.inspect, l.set, l.record, l.caughtUp, l.batch}
}

// build reads a script and inserts shared parts at lines of the form "--@
// name".
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

// strip removes comment lines and indentation, which are a third of the source.
// So comments cost a node nothing, and changing them does not change a script's
// SHA.
func strip(b *strings.Builder, source string) {
	for line := range strings.Lines(source) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--") {
			b.WriteString(line)
			b.WriteByte('\n')
		}
	}
}
