package once

import (
	"context"
	"errors"
	"fmt"

	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/report"
)

// durable looks, for WithDurable, whether a majority of the nodes keeps on disk
// what is recorded now.
func durable(ctx context.Context, q *core.Quorum) error {
	f, lack := &fault.Failure{Needed: q.Size()/2 + 1}, 0
	err := q.Onlooker().Check(ctx, func(n report.Node) (enough bool) {
		// A node that could not be asked may be durable, or not.
		err := unasked(n)
		if err == nil {
			if err = lacking(n); err != nil {
				lack++
			}
		}
		if err == nil {
			f.Votes++
		} else {
			f.Nodes = append(f.Nodes, fault.NodeFailure{Addr: n.Addr, Err: err})
		}
		return f.Votes >= f.Needed // an error tells what all of them say
	})
	switch {
	case err != nil:
		return err
	case f.Votes >= f.Needed:
		return nil
	case lack > q.Size()-f.Needed:
		f.Err = ErrNotDurable
	case ctx.Err() != nil:
		f.Err = fault.CutShort(fault.ErrNoQuorum, ctx).Err
	default:
		f.Err = fault.ErrNoQuorum
	}
	return f
}

// unasked says why it is unknown what a node keeps on disk. That comes with its
// version.
func unasked(n report.Node) error {
	const what = "cannot be asked what it keeps on disk: "
	switch {
	case n.Version != "":
		return nil
	case n.Err == nil:
		return errors.New(what + "INFO has failed")
	}
	return fmt.Errorf(what+"%w", n.Err)
}

// lacking says what a node lacks to be durable. Where a node does not tell its
// policy (some services refuse CONFIG), an append-only file is good enough:
// the default is everysec.
func lacking(n report.Node) error {
	switch {
	case !n.AOF:
		return errors.New("appendonly is no; set appendonly yes")
	case n.Fsync == "no":
		return errors.New("appendfsync is no; set " +
			"everysec or always")
	}
	return nil
}
