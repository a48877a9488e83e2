package protocol_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/trace"
)

// This file plays the traces in testdata/traces. Each of them drives one
// machine of the protocol, with no world around it: what one client makes of
// its set (Membership), how long it waits for nodes (Fanout), what an
// operator's call does (Declaration), or a claim whose nodes turn out to be
// others. They show the rules that the simulator does not run. CONTRIBUTING.md
// has the commands.

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
func playTrace(t *testing.T, file string, blocks []trace.Block, rules protocol.Rules) []trace.Block {
	p := &player{rules: rules, sets: map[string]*protocol.Configuration{}, names: map[protocol.Stamp]string{}, asked: map[int]uint32{}}
	return trace.Play(blocks, func(line string) []string {
		defer func() {
			if r := recover(); r != nil {
				t.Fatalf("%s: %q: %v", file, line, r)
			}
		}()
		p.lines = nil
		p.do(strings.Fields(line))
		p.report()
		return p.lines
	})
}

// TestTraces plays each trace and compares what it leads to. With -rewrite it
// writes that into the file: look at the difference before it is committed.
func TestTraces(t *testing.T) {
	t.Parallel()
	for file, blocks := range traces(t) {
		played := playTrace(t, file, blocks, protocol.Rules{})
		if *rewrite {
			if err := os.WriteFile(file, []byte(trace.Format(played)), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		for i, b := range blocks {
			if !slices.Equal(b.Output, played[i].Output) {
				t.Errorf("%s: %q leads to\n\t%s\nand should to\n\t%s", file, b.Commands, strings.Join(played[i].Output, "\n\t"), strings.Join(b.Output, "\n\t"))
			}
		}
	}
}

// player carries out the commands of a trace.
type player struct {
	rules   protocol.Rules
	sets    map[string]*protocol.Configuration
	names   map[protocol.Stamp]string
	ballots int

	client *protocol.Membership
	asked  map[int]uint32 // by number: the last question to it

	claim *protocol.Claim
	joins []protocol.Request
	phase protocol.Phase

	fanout *protocol.Fanout
	now    protocol.Time

	lines []string
}

func (p *player) say(format string, args ...any) {
	p.lines = append(p.lines, fmt.Sprintf(format, args...))
}

// do carries out one command.
func (p *player) do(words []string) {
	args := words[1:]
	n := -1
	if len(args) > 0 {
		if k, err := strconv.Atoi(args[0]); err == nil {
			n = k
		}
	}
	switch words[0] {
	case "set":
		p.set(args[0], args[1:])
	case "change":
		p.change(args)
	case "client":
		p.client = protocol.NewMembership(args, p.rules)
		p.client.Exchanges = true
	case "meet":
		p.meet(n, args[1:])
	case "told":
		p.client.Told(n, p.asked[n], p.keeps(args[1:]))
	case "up":
		p.client.Up(n)
	case "down":
		p.client.Down(n)
	case "refuse":
		p.client.Refused(n)
	case "decide":
		if !p.client.Decide(p.sets[args[0]]) {
			p.say("the client has no number left for a member of %s", args[0])
		}
	case "outlive":
		p.outlive(args[1], n, args[2])
	case "list":
		p.list(args)
	case "show":
		p.show()
	case "claim", "answer", "exclude":
		p.ofClaim(words[0], n, args)
	case "trip", "took", "waits":
		p.ofFanout(words[0], n, args)
	case "declare":
		p.declare(args)
	default:
		panic("no such command")
	}
}

// ballot returns the next one.
func (p *player) ballot() protocol.Ballot {
	p.ballots++
	return ballot(p.ballots)
}

// set makes a set of its first configuration. The identity of its member at A
// is S.A.
func (p *player) set(name string, addrs []string) {
	c := setOf(1, addrs...)
	c.Stamp = protocol.StampOf(1, p.ballot())
	for i, a := range addrs {
		c.Members[i].Identity = name + "." + a
	}
	p.sets[name], p.names[c.Stamp] = c, name
}

// change makes the three configurations of an exchange: NAME/learning,
// NAME/joint and NAME.
func (p *player) change(args []string) {
	name, from := args[0], p.sets[args[2]]
	var change protocol.Change
	for i := 3; i+1 < len(args); i += 2 {
		if args[i] == "remove" {
			change.Remove = append(change.Remove, args[i+1])
		} else {
			change.Add = append(change.Add, protocol.Member{Identity: name + "." + args[i+1], Addr: args[i+1]})
		}
	}
	for at, c := range p.exchange(from, change) {
		at = name + at
		p.sets[at], p.names[c.Stamp] = c, at
	}
}

// exchange makes the three configurations of an exchange, by what names them.
func (p *player) exchange(from *protocol.Configuration, change protocol.Change) map[string]*protocol.Configuration {
	learning := from.Begin(change, p.ballot())
	joint := learning.Join(p.ballot())
	return map[string]*protocol.Configuration{"/learning": learning, "/joint": joint, "": joint.Finish(p.ballot())}
}

// keeps is what a server shows: "nothing", "nothing life L", "A of S", or
// "A of S accepted".
func (p *player) keeps(what []string) (has protocol.NodeSet) {
	if what[0] == "nothing" {
		if len(what) > 2 {
			has.Life = what[2]
		}
		has.Text = has.String()
		return has
	}
	c := p.sets[what[2]]
	at := slices.IndexFunc(c.Members, func(m protocol.Member) bool { return m.Addr == what[0] || m.Identity == what[0] })
	has = protocol.NodeSet{Promised: ballot(0), Phase: protocol.SetRecorded, Identity: c.Members[at].Identity, Config: c}
	if len(what) > 3 {
		has.Phase = protocol.SetAccepted
	}
	has.Text = has.String()
	return has
}

// meet begins the connection of a number. The run of the server is named by
// what it shows, unless the command says another one.
func (p *player) meet(n int, what []string) {
	run := what[0]
	if i := slices.Index(what, "run"); i >= 0 {
		run, what = what[i+1], what[:i]
	}
	if v := p.client.Met(n, run, p.keeps(what)); v.Fault != protocol.SetFits {
		p.say("%d is not used: %s", n, faultNames[v.Fault])
	}
}

var faultNames = map[protocol.SetFault]string{
	protocol.SetFits: "a member", protocol.SetWrong: "the list is another set's", protocol.SetPending: "its set is about to be recorded",
	protocol.SetLost: "it lost its data", protocol.SetCopied: "it is a copy", protocol.SetElsewhere: "it is of another set now",
	protocol.SetRetired: "no member", protocol.SetFull: "there are no numbers left", protocol.SetAlias: "another name of a node",
	protocol.SetAstray: "another member is at its address",
}

// report says what the client wants done, and what has become of the claim.
func (p *player) report() {
	if p.client != nil {
		for _, a := range p.client.Out {
			p.act(a)
		}
		p.client.Out = nil
	}
	if p.claim == nil {
		return
	}
	for _, r := range p.claim.Out {
		p.say("the claim sends %v to %d", r.Op, r.Node)
	}
	p.claim.Out = p.claim.Out[:0]
	if is := p.claim.Phase(); is != p.phase {
		p.phase = is
		p.say("the claim %s", map[protocol.Phase]string{protocol.Waiting: "waits", protocol.Holding: "holds"}[is])
	}
}

func (p *player) act(a protocol.SetAction) {
	switch {
	case a.Reconnect:
		p.say("%d is connected to again", a.Node)
	case a.Begin:
		p.say("%d at %s is connected to", a.Node, p.client.Addr(a.Node))
	case a.Cease:
		p.say("%d at %s is let go of", a.Node, p.client.Addr(a.Node))
	case a.Ask > 0:
		p.asked[a.Node] = a.Ask
		p.say("%d is asked what it keeps", a.Node)
	case a.Kind == protocol.SetLife:
		p.say("%d is to keep a word", a.Node)
	default:
		p.say("%d: %v %s of %s", a.Node, a.Kind, a.Identity, p.names[a.Config.Stamp])
	}
}

// outlive has a member of a set be replaced many times.
func (p *player) outlive(name string, times int, last string) {
	if p.sets[name] == nil {
		panic("no such set")
	}
	c := p.sets[name]
	for i := range times {
		next := fmt.Sprint("N", i)
		x := p.exchange(c, protocol.Change{Add: []protocol.Member{{Identity: name + "." + next, Addr: next}}, Remove: []string{last}})
		if c, last = x[""], next; !p.client.Decide(x["/learning"]) {
			p.say("the client stops after %d exchanges", i)
			break
		}
		p.client.Decide(x["/joint"])
		p.client.Decide(c)
	}
	p.client.Out = nil // it has connected and let go of many
	p.names[p.client.Stamp()] = "the last of " + name
}

// list has a newer list of addresses name one, where a server shows something:
// "list A B D: D nothing".
func (p *player) list(args []string) {
	end := slices.IndexFunc(args, func(a string) bool { return strings.HasSuffix(a, ":") })
	args[end] = strings.TrimSuffix(args[end], ":")
	addr, has := args[end+1], p.keeps(args[end+2:])
	at := p.client.Moves(addr, has, args[:end+1])
	if at < 0 {
		p.say("no number goes on at %s", addr)
		return
	}
	p.say("%d goes on at %s", at, addr)
	p.client.Move(at, addr, has)
}

// show says what the client counts on.
func (p *player) show() {
	g := p.client.Group()
	p.say("counts on %s", p.names[p.client.Stamp()])
	votes := 0
	for i := range g.Nodes {
		if g.Absent&(1<<i) == 0 {
			votes++
		}
	}
	p.say("%d nodes have votes", votes)
	if g.Nodes > 8 {
		return
	}
	for i := range g.Nodes {
		is := "no member"
		if k := p.client.Member(i); k >= 0 {
			is = p.client.Config().Members[k].Identity
		}
		wanted := "wanted"
		if !p.client.Wants(i) {
			wanted = "not wanted"
		}
		if p.client.Outside()&(1<<i) != 0 {
			wanted += ", its votes do not count"
		}
		p.say("%d at %s: %s, %s", i, p.client.Addr(i), is, wanted)
	}
	for _, member := range p.client.Config().Members {
		asks := false
		for i := range g.Nodes {
			asks = asks || p.client.Addr(i) == member.Addr && p.client.Wants(i)
		}
		if !asks {
			p.say("no number asks at %s, for %s", member.Addr, member.Identity)
		}
	}
}

// ofClaim drives a claim of three nodes that hold it at its ticket.
func (p *player) ofClaim(command string, n int, args []string) {
	const ticket = 64
	switch command {
	case "claim":
		p.claim = protocol.NewClaim(protocol.Config{
			Terms: protocol.Terms{Weight: 1, Capacity: 1, TTL: time.Second}, Nodes: 3, NodeTimeout: 50 * time.Millisecond, Drift: 12 * time.Millisecond, Rules: p.rules,
		})
		p.now = protocol.Time(time.Hour)
		p.claim.Start(p.now, ticket, 0, 0)
		p.joins = slices.Clone(p.claim.Out)
		p.claim.Out = p.claim.Out[:0]
	case "answer":
		p.claim.Answer(p.now, p.joins[n], protocol.Answer{Status: protocol.OK, Incarnation: protocol.Incarnation(n + 1), Ticket: ticket, Vote: args[1] == "vote"})
	case "exclude":
		out := uint32(0)
		if n >= 0 {
			out = 1 << n
		}
		p.claim.Exclude(p.now, out, 0)
	}
}

// ofFanout drives what a client of three nodes knows of their round trips.
func (p *player) ofFanout(command string, n int, args []string) {
	if p.fanout == nil {
		p.fanout = protocol.NewFanout(3, p.rules)
	}
	duration := func(i int) time.Duration {
		d, err := time.ParseDuration(args[i])
		if err != nil {
			panic(err)
		}
		return d
	}
	switch command {
	case "trip":
		p.fanout.Begin(p.now, n, duration(1))
	case "took":
		if len(args) > 2 {
			p.now = p.now.Add(duration(3))
		}
		p.fanout.Answered(p.now, n, duration(1), time.Second)
	case "waits":
		p.say("a call waits for %v", p.fanout.QuorumTimeout(0, 200*time.Millisecond, 8*time.Second))
	}
}

// declare is an operator's call for nodes that are used as the words say.
func (p *player) declare(args []string) {
	d := protocol.Declaration{Rules: p.rules}
	var uses []protocol.NodeUse
	for _, a := range args {
		uses = append(uses, map[string]protocol.NodeUse{
			"unknown": protocol.UseUnknown, "unused": protocol.UseNone, "used": protocol.UseMade, "begun": protocol.UseBegun,
		}[a])
	}
	switch {
	case !d.Judge(uses):
		p.say("it waits for the other nodes")
	case d.Set:
		p.say("it records the set")
	default:
		p.say("it leaves the set as it is")
	}
}
