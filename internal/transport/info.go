package transport

import (
	"net"
	"strings"
)

// This file owns what a node is asked about itself as a connection begins.

// questions ask a node about itself. identify knows them by their index. They
// go out with the login, so that a connection that has nothing to tell the node
// takes one round trip.
var questions = [][]string{
	{"CLIENT", "ID"}, {"INFO", "server"}, {"INFO", "replication"}, {"INFO", "persistence"}, {"CONFIG", "GET", "appendfsync"}, {"INFO", "memory"},
}

// parse takes one section of INFO. It ignores what it does not know: servers of
// other makes send other fields. What is missing stays zero.
func (i *Info) parse(section string) {
	host := ""
	for line := range strings.Lines(section) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "run_id":
			i.RunID = short(value)
		case "redis_version":
			i.Version = short(value)
		case "role":
			i.Role = value
		case "redis_mode":
			if value == "sentinel" { // it has no role
				i.Role = value
			}
		case "master_host":
			host = short(value)
		case "master_port":
			i.Master = net.JoinHostPort(host, short(value))
		case "maxmemory_policy":
			i.Eviction = short(value)
		case "aof_enabled":
			i.AOFEnabled = value == "1"
		case "master_replid2":
			if strings.Trim(value, "0") != "" {
				i.Former = short(value[:min(len(value), 16)])
			}
		case "aof_rewrite_in_progress", "aof_rewrite_scheduled":
			i.Rewriting = i.Rewriting || value == "1"
		}
	}
}

// short returns a word of a usual length, else nothing: it goes back to the
// node with every connection.
func short(s string) string {
	if len(s) > 64 || strings.ContainsAny(s, " \t") {
		return ""
	}
	return s
}

// aofNotReady: a server that has been a replica until a moment ago writes to
// its append-only file only when that has been rewritten. Till then
// fsync=always keeps nothing, and a restart brings back the memory of before,
// with a marker that says that all is well. So nothing is to be confirmed by
// it.
func (i *Info) aofNotReady() bool {
	return i.AOFEnabled && i.FsyncAlways && i.Former != "" && i.Rewriting
}
