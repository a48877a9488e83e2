package fleet

import "github.com/quorate/quorate/internal/testkit/proxy"

// Wires are the proxies between each client and each node: wires[client][node].
// Each pair has its own, so that a partition can cut off clients selectively.
type Wires [][]*proxy.Proxy

// OpenWires opens a proxy for each client and node.
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

// Ways returns a client's proxies, by the addresses of the servers.
func (ws Wires) Ways(client int, nodes []*Node) map[string]string {
	ways := map[string]string{}
	for i, p := range ws[client] {
		ways[nodes[i].Server.Addr()] = p.Addr()
	}
	return ways
}

// Close closes all proxies and their connections.
func (ws Wires) Close() {
	for _, row := range ws {
		for _, p := range row {
			p.Close()
		}
	}
}

// Set imposes a fault on the wires between the given clients and nodes, for all
// kinds of connections.
func (ws Wires) Set(clients, nodes []int, which proxy.Direction, f proxy.Fault) {
	for _, c := range clients {
		for _, n := range nodes {
			ws[c][n].Impose(which, proxy.Any, f)
		}
	}
}

// Cut closes all connections between the given clients and all nodes, and
// returns how many there were. New connections work, subject to the faults that
// are imposed.
func (ws Wires) Cut(clients []int) (ended int) {
	for _, c := range clients {
		for _, p := range ws[c] {
			ended += p.End()
		}
	}
	return ended
}
