// Package script is what runs on a node: the Lua scripts, the bytes of the
// commands that call them, and a distrustful reading of what comes back.
//
// internal/model says what the scripts mean; scripts/open.lua and queue.lua say
// how they keep it in Redis.
package script

import (
	"crypto/sha1" //nolint:gosec // the name that Redis gives to a script
	"embed"
	"encoding/hex"
	"strings"
)

// Script is one script as it is loaded into a node.
type Script struct {
	Name   string
	Source string
	SHA    string
}

//go:embed scripts/*.lua
var files embed.FS

// enter is join and settle: they differ in a flag.
var (
	enter, beat, leave       = build("enter"), build("beat"), build("leave")
	mark, bootstrap, inspect = build("mark"), build("bootstrap"), build("inspect")
	record, whole, batch     = build("record"), build("whole"), build("batch")
)

// All returns every script, to be loaded into a node that does not know them yet.
func All() []Script {
	return []Script{enter, beat, leave, mark, bootstrap, inspect, record, whole, batch}
}

// build reads a script and puts the shared parts where it asks for them with "--@ name".
func build(name string) Script {
	source := read(name)
	sum := sha1.Sum([]byte(source)) //nolint:gosec // see above
	return Script{Name: name, Source: source, SHA: hex.EncodeToString(sum[:])}
}

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

// strip leaves out comments and indentation, a third of the source.
func strip(b *strings.Builder, source string) {
	for line := range strings.Lines(source) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--") {
			b.WriteString(line)
			b.WriteByte('\n')
		}
	}
}
