package protocol

import (
	"fmt"
	"slices"
	"testing"
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
		b.Put(Joins, fmt.Sprint("join", i))
	}
	for i := range 7 {
		b.Put(Waits, fmt.Sprint("wait", i))
	}
	b.Put(Renewals, "beat0")
	b.Put(Renewals, "beat1")
	if b.Len() != 13 || !b.Behind(Renewals) {
		t.Errorf("%d requests, behind %v", b.Len(), b.Behind(Renewals))
	}
	got, want := drained(&b), []string{
		"beat0", "beat1", "join0", "wait0", "wait1", "wait2", "join1", "wait3", "wait4", "wait5", "join2", "wait6", "join3",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
	if b.Behind(Joins) || b.Len() != 0 {
		t.Error("an empty backlog has something")
	}
}

// Operations on records have their turns too, and they keep no claim out.
func TestBacklogServesRecords(t *testing.T) {
	t.Parallel()
	var b Backlog[string]
	for i := range 3 {
		b.Put(Records, fmt.Sprint("record", i))
		b.Put(Waits, fmt.Sprint("wait", i))
	}
	b.Put(Joins, "join")
	b.Put(Renewals, "beat")
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
		q    RegisterOp
		want Class
	}{
		{RegisterOp{Op: OpPut, Stored: Stored{Erased: true}}, ClassOf(Left, OpLeave)},
		{RegisterOp{Op: OpPut}, Records}, {RegisterOp{Op: OpOpen}, Records}, {RegisterOp{Op: OpRead}, Records},
	} {
		if got := ClassOfRecord(&c.q); got != c.want {
			t.Errorf("%v: class %d, want %d", c.q.Op, got, c.want)
		}
	}
}

// What there was no room for is the next one again.
func TestBacklogReturn(t *testing.T) {
	t.Parallel()
	var b Backlog[string]
	b.Put(Joins, "a")
	b.Return(Joins, b.Take(Joins)) // the only one
	b.Put(Joins, "b")
	b.Return(Joins, b.Take(Joins))
	b.Put(Joins, "c")
	b.Take(Joins)
	b.Return(Joins, b.Take(Joins))
	if got := drained(&b); !slices.Equal(got, []string{"b", "c"}) {
		t.Error(got)
	}
}

// A backlog that is never empty does not grow without end.
func TestBacklogGivesMemoryBack(t *testing.T) {
	t.Parallel()
	var b Backlog[int]
	for i := range 100_000 {
		b.Put(Renewals, i)
		if i >= 10 {
			if got := b.Take(Renewals); got != i-10 {
				t.Fatalf("%d, want %d", got, i-10)
			}
		}
	}
	if n := cap(b.queues[Renewals]); n > 8192 {
		t.Errorf("room for %d", n)
	}
}

func TestClassOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		phase Phase
		op    Op
		want  Class
	}{
		{Holding, OpBeat, Renewals}, {Holding, OpSettle, Renewals}, {Left, OpLeave, Renewals}, {Lost, OpLeave, Renewals},
		{Waiting, OpBeat, Waits}, {Waiting, OpSettle, Waits}, {Joining, OpSettle, Waits}, {Joining, OpJoin, Joins},
		{Holding, OpJoin, Renewals}, // at a node that was asked later
	} {
		if got := ClassOf(c.phase, c.op); got != c.want {
			t.Errorf("%v in phase %d: %d, want %d", c.op, c.phase, got, c.want)
		}
	}
}
