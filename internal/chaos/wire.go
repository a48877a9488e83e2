package main

import (
	"github.com/quorate/quorate/internal/testkit/proxy"
)

// wires are the ways from each client to each node: wires[client][node]. One
// for each pair, so that a partition can part clients too.
type wires [][]*proxy.Proxy

func openWires(clients int, nodes []*node) (wires, error) {
	all := make(wires, clients)
	for c := range all {
		for _, n := range nodes {
			p, err := proxy.Open(n.server.Addr())
			if err != nil {
				all.close()
				return nil, err
			}
			all[c] = append(all[c], p)
		}
	}
	return all, nil
}

// ways are a client's ways to the servers, by their addresses.
func (ws wires) ways(client int, nodes []*node) map[string]string {
	ways := map[string]string{}
	for i, p := range ws[client] {
		ways[nodes[i].server.Addr()] = p.Addr()
	}
	return ways
}

func (ws wires) close() {
	for _, row := range ws {
		for _, p := range row {
			p.Close()
		}
	}
}

// set imposes a fault on the wires between some clients and some nodes, for
// connections of all kinds.
func (ws wires) set(clients, nodes []int, which proxy.Direction, f proxy.Fault) {
	for _, c := range clients {
		for _, n := range nodes {
			ws[c][n].Impose(which, proxy.Any, f)
		}
	}
}

// cut ends all connections between some clients and all nodes, and reports how
// many there were. New connections pass, or suffer what is imposed on them.
func (ws wires) cut(clients []int) (ended int) {
	for _, c := range clients {
		for _, p := range ws[c] {
			ended += p.End()
		}
	}
	return ended
}
