package protocol_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/protocol"
)

// A report says which set the nodes show, how each stands to it, and that a
// recording has ended half-way.
func TestReportOfASet(t *testing.T) {
	t.Parallel()
	set, other := setOf(1, "a", "b", "c"), setOf(2, "d", "e", "f")
	a, d := recordedAt(set, "a"), recordedAt(other, "d")
	accepted := recordedAt(set, "b")
	accepted.Phase, accepted.Accepted = protocol.SetAccepted, ballot(1)
	promised := protocol.NodeSet{Promised: ballot(1)}

	r := protocol.ReportSet(nil, []*protocol.NodeSet{{}, {}, nil})
	assert.Equal(t, protocol.SetReport{Standing: []protocol.SetStanding{protocol.StandsWithout, protocol.StandsWithout, protocol.StandsUnknown}}, r)
	r = protocol.ReportSet(nil, []*protocol.NodeSet{&promised, &accepted, {}})
	assert.Equal(t, protocol.SetReport{Config: set, Half: true, Standing: []protocol.SetStanding{protocol.StandsPromised, protocol.StandsAccepted, protocol.StandsWithout}}, r)
	r = protocol.ReportSet(nil, []*protocol.NodeSet{&a, &accepted, nil})
	assert.True(t, r.Recorded && r.Half)
	r = protocol.ReportSet(set, []*protocol.NodeSet{&a, nil, &d})
	assert.Equal(t, protocol.SetReport{Config: set, Recorded: true, Standing: []protocol.SetStanding{protocol.StandsMember, protocol.StandsUnknown, protocol.StandsOther}}, r)
}
