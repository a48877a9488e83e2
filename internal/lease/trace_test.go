package lease_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/trace"
)

// This file plays the traces in testdata/traces. They drive one machine of the
// protocol, with no world around it: how long a client waits for nodes
// (Fanout). internal/sim/testdata/README.md has the commands.

var rewrite = flag.Bool("rewrite", false, "write what the traces in testdata lead to now into their files")

// traces reads the trace files.
func traces(t *testing.T) map[string][]trace.Block {
	files, err := filepath.Glob("testdata/traces/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no traces: %v", err)
	}
	all := map[string][]trace.Block{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if all[file], err = trace.Parse(string(text)); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	return all
}

// playTrace returns a trace with what it leads to under some rules.
func playTrace(t *testing.T, file string, blocks []trace.Block) []trace.Block {
	p := &player{}
	return trace.Play(blocks, func(line string) []string {
		defer func() {
			if r := recover(); r != nil {
				t.Fatalf("%s: %q: %v", file, line, r)
			}
		}()
		p.lines = nil
		p.do(strings.Fields(line))
		return p.lines
	})
}

// TestTraces plays each trace and compares what it leads to. With -rewrite it
// writes that into the file: look at the difference before it is committed.
func TestTraces(t *testing.T) {
	t.Parallel()
	for file, blocks := range traces(t) {
		played := playTrace(t, file, blocks)
		if *rewrite {
			if err := os.WriteFile(file, []byte(trace.Format(played)), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		for i, b := range blocks {
			if !slices.Equal(b.Output, played[i].Output) {
				t.Errorf("%s: %q leads to\n\t%s\nand should to\n\t%s", file, b.Commands,
					strings.Join(played[i].Output, "\n\t"), strings.Join(b.Output, "\n\t"))
			}
		}
	}
}

// player carries out the commands of a trace.
type player struct {
	fanout *lease.Fanout
	now    protocol.Time

	lines []string
}

func (p *player) say(format string, args ...any) {
	p.lines = append(p.lines, fmt.Sprintf(format, args...))
}

// do carries out one command: it drives what a client of three nodes knows of
// their round trips.
func (p *player) do(words []string) {
	if p.fanout == nil {
		p.fanout = lease.NewFanout(3)
	}
	duration := func(i int) time.Duration {
		d, err := time.ParseDuration(words[i])
		if err != nil {
			panic(err)
		}
		return d
	}
	node := func() int { return int(words[1][0] - '0') }
	switch words[0] {
	case "trip":
		p.fanout.Begin(p.now, node(), duration(2))
	case "took":
		if len(words) > 3 {
			p.now = p.now.Add(duration(4))
		}
		p.fanout.Answered(p.now, node(), duration(2), time.Second)
	case "waits":
		p.say("a call waits for %v", p.fanout.QuorumTimeout(protocol.Majority(3), 0, 200*time.Millisecond, 8*time.Second))
	default:
		panic("no such command")
	}
}
