package server

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
)

// The keys that clients read without a script, and the plain ones.

// text is a plain key.
type text struct {
	value string
	ends  int64 // 0: it does not
}

// plain carries out a command of one key.
func (s *Server) plain(now int64, words []string) ([]resp.Value, error) {
	key := words[1]
	v, exists := s.texts[key]
	if exists && v.ends != 0 && v.ends <= now {
		delete(s.texts, key)
		v, exists = text{}, false
	}
	switch strings.ToUpper(words[0]) {
	case "EXISTS": // of script.SpreadKeys, to find out about cluster mode
		return num(0), nil
	case "GET", "GETRANGE": // always of all that there is
		switch {
		case strings.HasSuffix(key, ":{}:set"):
			return str(s.Model.SetText()), nil
		case strings.Contains(key, ":{}:") && !strings.HasSuffix(key, ":turn"):
			if set := s.Model.Set(); stampOf(key) != set.Stamp() {
				return str(""), nil
			}
			return str(s.Model.Marker()), nil
		case strings.HasSuffix(key, "}:r"):
			return str(s.recorded(now, strings.TrimSuffix(key, ":r"))), nil
		}
		return str(v.value), nil
	case "SET":
		set := text{value: words[2]}
		for i, w := range words[3:] {
			switch {
			case strings.EqualFold(w, "NX") && exists, strings.EqualFold(w, "XX") && !exists:
				return str(""), nil
			case strings.EqualFold(w, "PX"):
				set.ends = now + integer(words[3+i+1])
			}
		}
		s.texts[key] = set
		return str("OK"), nil
	case "PEXPIRE":
		if exists {
			v.ends = now + integer(words[2])
			s.texts[key] = v
		}
		return num(0), nil
	case "DEL":
		delete(s.texts, key)
		return num(0), nil
	}
	return nil, resp.Error("ERR unknown command '" + words[0] + "'")
}

// scan lists the keys of the names that match a pattern, all at once.
func (s *Server) scan(words []string) []resp.Value {
	pattern := "*"
	for i, w := range words[:len(words)-1] {
		if strings.EqualFold(w, "MATCH") {
			pattern = words[i+1]
		}
	}
	v := str("0")
	for _, key := range slices.Sorted(s.Model.Names()) {
		if matches(pattern, key) {
			v = append(v, resp.Value{Str: []byte(key)})
		}
		if s.Model.Name(key).HasRegister() && matches(pattern, key+":r") {
			v = append(v, resp.Value{Str: []byte(key + ":r")})
		}
	}
	return v
}

// recorded is the record of a name as record.lua keeps it. Its promise is left
// out: no onlooker reads that.
func (s *Server) recorded(now int64, name string) string {
	r, end := s.Model.Name(name).RecordedUntil()
	if r.Version == (protocol.Version{}) || end > 0 && end <= now {
		return ""
	}
	return fmt.Sprintf("0 0 %s %d %s %d %d %d %s", protocol.ID{}, r.Ticket,
		r.ID, r.Seq, bit(r.Erased), end, r.Value)
}

// info is what INFO says, of all sections.
func (s *Server) info() string {
	return strings.Join([]string{
		"redis_version:7.0.0", "run_id:" + s.RunID, "role:master", "connected_slaves:0",
		"maxmemory_policy:noeviction", "aof_enabled:0", "",
	}, "\r\n")
}
