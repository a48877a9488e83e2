package process

import (
	"fmt"
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
)

func drained(b *Backlog[string]) (all []string) {
	for k, ok := b.Next(); ok; k, ok = b.Next() {
		all = append(all, b.Take(k))
	}
	return all
}

// Renewals go first, in their order. A join goes after three requests of
// waiting claims, so neither of these keeps the other out.
func TestBacklogOrder(t *testing.T) {
	t.Parallel()
	var b Backlog[string]
	for i := range 4 {
		b.Put(protocol.Joins, fmt.Sprint("join", i))
	}
	for i := range 7 {
		b.Put(protocol.Waits, fmt.Sprint("wait", i))
	}
	b.Put(protocol.Renewals, "beat0")
	b.Put(protocol.Renewals, "beat1")
	if b.Len() != 13 || !b.Behind(protocol.Renewals) {
		t.Errorf("%d requests, behind %v", b.Len(), b.Behind(protocol.Renewals))
	}
	got, want := drained(&b), []string{
		"beat0", "beat1", "join0", "wait0", "wait1", "wait2", "join1", "wait3", "wait4",
		"wait5", "join2", "wait6", "join3",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
	if b.Behind(protocol.Joins) || b.Len() != 0 {
		t.Error("an empty backlog has something")
	}
}

// Operations on records have their turns too, and they keep no claim out.
func TestBacklogServesRecords(t *testing.T) {
	t.Parallel()
	var b Backlog[string]
	for i := range 3 {
		b.Put(protocol.Records, fmt.Sprint("record", i))
		b.Put(protocol.Waits, fmt.Sprint("wait", i))
	}
	b.Put(protocol.Joins, "join")
	b.Put(protocol.Renewals, "beat")
	want := []string{"beat", "join", "wait0", "record0", "wait1", "wait2", "record1", "record2"}
	if got := drained(&b); !slices.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
}

// The leave of a claim must not overtake the erasure that its holder wanted
// before it.
func TestClassOfRecord(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		op   protocol.Op
		s    *protocol.Stored
		want protocol.Class
	}{
		{protocol.OpPut, &protocol.Stored{Erased: true}, ClassOf(lease.Left, protocol.OpLeave)},
		{protocol.OpPut, &protocol.Stored{}, protocol.Records},
		{protocol.OpOpen, &protocol.Stored{}, protocol.Records}, {protocol.OpRead, nil, protocol.Records},
	} {
		if got := lease.ClassOfRecord(&protocol.Request{Op: c.op, Stored: c.s}); got != c.want {
			t.Errorf("%v: class %d, want %d", c.op, got, c.want)
		}
	}
}

// What there was no room for is the next one again.
func TestBacklogReturn(t *testing.T) {
	t.Parallel()
	var b Backlog[string]
	b.Put(protocol.Joins, "a")
	b.Return(protocol.Joins, b.Take(protocol.Joins)) // the only one
	b.Put(protocol.Joins, "b")
	b.Return(protocol.Joins, b.Take(protocol.Joins))
	b.Put(protocol.Joins, "c")
	b.Take(protocol.Joins)
	b.Return(protocol.Joins, b.Take(protocol.Joins))
	if got := drained(&b); !slices.Equal(got, []string{"b", "c"}) {
		t.Error(got)
	}
}

func TestClassOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		phase lease.Phase
		op    protocol.Op
		want  protocol.Class
	}{
		{lease.Holding, protocol.OpBeat, protocol.Renewals}, {lease.Holding, protocol.OpSettle, protocol.Renewals},
		{lease.Left, protocol.OpLeave, protocol.Renewals}, {lease.Lost, protocol.OpLeave, protocol.Renewals},
		{lease.Waiting, protocol.OpBeat, protocol.Waits}, {lease.Waiting, protocol.OpSettle, protocol.Waits},
		{lease.Joining, protocol.OpSettle, protocol.Waits}, {lease.Joining, protocol.OpJoin, protocol.Joins},
		{lease.Holding, protocol.OpJoin, protocol.Renewals}, // at a node that was asked later
	} {
		if got := ClassOf(c.phase, c.op); got != c.want {
			t.Errorf("%v in phase %d: %d, want %d", c.op, c.phase, got, c.want)
		}
	}
}
