// Package server is a server that knows the commands of the library's clients,
// and no others. It decodes a command, lets the reference node of
// internal/model carry it out, and encodes the answer as a Redis with the
// scripts does. What follows from a command, the model decides.
//
// internal/testkit/memory puts connections before it. internal/script/conformance
// compares its answers with those of a Redis.
package server

import (
	"strconv"
	"strings"
	"sync"

	"github.com/quorate/quorate/internal/model"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
)

// Server is a server. Like a Redis it carries out one command after the other:
// it is not safe for concurrent use.
type Server struct {
	Model *model.Node // what it keeps of all names
	RunID string
	// Publish takes a message on a channel, and returns how many clients get it.
	Publish func(channel, payload string) (heard int64)
	texts   map[string]text
}

// New returns a server without data.
func New(runID string, publish func(channel, payload string) (heard int64)) *Server {
	s := &Server{RunID: runID, Publish: publish}
	s.Lose()
	return s
}

// Lose has the server lose its data.
func (s *Server) Lose() { s.Model, s.texts = model.New(0), map[string]text{} }

// Do carries out one command at now, in milliseconds of the server's clock. The
// error is the server's answer, or nil.
func (s *Server) Do(now int64, words []string) ([]resp.Value, error) {
	switch name := strings.ToUpper(words[0]); {
	case name == "EVALSHA":
		return s.eval(now, words[1:])
	case name == "SCRIPT" && strings.EqualFold(words[1], "EXISTS"):
		all := make([]resp.Value, len(words)-2)
		for i := range all {
			all[i].Int = 1
		}
		return all, nil
	case name == "SCRIPT":
		return str("loaded"), nil
	case name == "PING":
		return str("PONG"), nil
	case name == "TIME":
		return []resp.Value{{Str: strconv.AppendInt(nil, now/1000, 10)},
			{Str: strconv.AppendInt(nil, now%1000*1000, 10)}}, nil
	case name == "PUBLISH":
		return num(s.Publish(words[1], words[2])), nil
	case name == "SCAN":
		return s.scan(words), nil
	case name == "INFO":
		return str(s.info()), nil
	}
	return s.plain(now, words)
}

// names of the scripts, by SHA.
var names = sync.OnceValue(func() map[string]string {
	m := map[string]string{}
	for _, s := range script.All() {
		m[s.SHA] = s.Name
	}
	return m
})

// markerAt is where the key of the marker is among the keys of a script.
var markerAt = map[string]int{"enter": 4, "beat": 4, "leave": 4, "inspect": 4, "record": 2, "mark": 0}

// eval carries out a script: its SHA, the number of its keys, the keys, the
// arguments.
func (s *Server) eval(now int64, w []string) ([]resp.Value, error) {
	k := 2 + int(integer(w[1]))
	keys, args := w[2:k], w[k:]
	name := names()[w[0]]
	if at, ok := markerAt[name]; ok {
		s.Model.Count(stampOf(keys[at]))
		if name != "leave" && s.Model.Refuses() {
			return nil, resp.Error(script.OtherSet + " this node is not of that set")
		}
	}
	switch name {
	case "enter", "beat", "leave":
		return s.claim(now, name, keys, args), nil
	case "inspect":
		return s.inspect(now, keys, args), nil
	case "record":
		return s.record(now, keys, args), nil
	case "mark":
		s.Model.Connect(now, args[1], protocol.Incarnation(integer(args[2])), fresh(args[0]))
		inc, _ := s.Model.Incarnation()
		return []resp.Value{{Int: int64(inc)}, {Int: s.Model.Age(now).Milliseconds()}}, nil
	case "set":
		return s.step(now, args), nil
	case "caughtup":
		s.Model.Count(stampOf(keys[0]))
		return num(bit(!s.Model.Refuses() && s.Model.Complete(protocol.Incarnation(integer(args[0]))))), nil
	}
	return nil, resp.Error("NOSCRIPT no such script here")
}

// stampOf returns the stamp that the key of a marker has.
func stampOf(key string) nodeset.Stamp {
	_, stamp, _ := strings.Cut(key, ":{}:")
	return nodeset.Stamp(stamp)
}

// fresh is the incarnation that a script makes of a random id.
func fresh(random string) protocol.Incarnation {
	n, _ := strconv.ParseUint(random[:13], 16, 64)
	return protocol.Incarnation(n%(1<<52-1) + 1)
}

// step carries out a step of recording or changing the node's set.
func (s *Server) step(now int64, args []string) []resp.Value {
	x := nodeset.RecordStep{Ballot: nodeset.Ballot(args[1]), Identity: args[2], Seen: args[1],
		Life: args[1], Ready: args[0] == "ready"}
	for k := nodeset.SetPromise; k <= nodeset.SetRetire; k++ {
		if k.String() == args[0] {
			x.Kind = k
		}
	}
	switch args[0] {
	case "ready":
		x.Kind = nodeset.SetCommit
	case "enter":
		x.Kind = nodeset.SetMove
	}
	x.Config, _ = nodeset.ParseConfiguration(args[3])
	begun := fresh(args[4])
	set := s.Model.Step(now, x, begun)
	if inc, marked := s.Model.Incarnation(); marked && inc == begun {
		s.Model.Run = args[5]
	}
	return str(set.String())
}

func str(s string) []resp.Value { return []resp.Value{{Str: []byte(s)}} }

func num(i int64) []resp.Value { return []resp.Value{{Int: i}} }

func bit(on bool) int64 {
	if on {
		return 1
	}
	return 0
}

func integer(s string) int64 {
	i, _ := strconv.ParseInt(s, 10, 64)
	return i
}
