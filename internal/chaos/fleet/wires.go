package fleet

import "github.com/quorate/quorate/internal/testkit/proxy"

// Wires are the ways from each client to each node: wires[client][node]. One
// for each pair, so that a partition can part clients too.
type Wires [][]*proxy.Proxy

// OpenWires opens a way from each of so many clients to each node.
func OpenWires(clients int, nodes []*Node) (Wires, error) {
	all := make(Wires, clients)
	for c := range all {
		for _, n := range nodes {
			p, err := proxy.Open(n.Server.Addr())
			if err != nil {
				all.Close()
				return nil, err
			}
			all[c] = append(all[c], p)
		}
	}
	return all, nil
}

// Ways are a client's ways to the servers, by their addresses.
func (ws Wires) Ways(client int, nodes []*Node) map[string]string {
	ways := map[string]string{}
	for i, p := range ws[client] {
		ways[nodes[i].Server.Addr()] = p.Addr()
	}
	return ways
}

// Close ends all of them, with their connections.
func (ws Wires) Close() {
	for _, row := range ws {
		for _, p := range row {
			p.Close()
		}
	}
}

// Set imposes a fault on the wires between some clients and some nodes, for
// connections of all kinds.
func (ws Wires) Set(clients, nodes []int, which proxy.Direction, f proxy.Fault) {
	for _, c := range clients {
		for _, n := range nodes {
			ws[c][n].Impose(which, proxy.Any, f)
		}
	}
}

// Cut ends all connections between some clients and all nodes, and reports how
// many there were. New connections pass, or suffer what is imposed on them.
func (ws Wires) Cut(clients []int) (ended int) {
	for _, c := range clients {
		for _, p := range ws[c] {
			ended += p.End()
		}
	}
	return ended
}
