package main

import (
	"slices"
	"time"

	"github.com/quorate/quorate/internal/bench/servers"
	"github.com/quorate/quorate/internal/testkit/proxy"
)

// trouble is what is wrong with the last node.
type trouble string

const (
	none   trouble = ""
	killed trouble = "killed"
	// The node accepts connections and answers nothing, like a network that
	// drops everything.
	hung trouble = "hung"
	slow trouble = "50 ms away"
)

const slowBy = 50 * time.Millisecond // there and back

// prepare returns the nodes with the addresses to use, and a function that
// causes the trouble once all clients are connected.
func (t trouble) prepare(st *stage, n servers.Nodes) (through servers.Nodes, cause func() error, err error) {
	last := n.Len() - 1
	switch t {
	case killed:
		n.Deaf = 1
		return n, n.Node(last).Kill, nil
	case hung:
		n.Deaf = 1
		return n, n.Node(last).Stop, nil
	case slow:
		p, err := proxy.Open(n.Ways[last])
		if err != nil {
			return n, nil, err
		}
		st.onClose(p.Close)
		p.Impose(proxy.Both, proxy.Any, proxy.Fault{Delay: slowBy / 2})
		n.Ways = append(slices.Clone(n.Ways[:last]), p.Addr())
	}
	return n, func() error { return nil }, nil
}

// away returns the nodes behind proxies with the given round trip.
func away(st *stage, n servers.Nodes, trip time.Duration) (servers.Nodes, error) {
	n.Ways = slices.Clone(n.Ways)
	for i, way := range n.Ways {
		p, err := proxy.Open(way)
		if err != nil {
			return n, err
		}
		st.onClose(p.Close)
		p.Impose(proxy.Both, proxy.Any, proxy.Fault{Delay: trip / 2, Exact: true})
		n.Ways[i] = p.Addr()
	}
	return n, nil
}
