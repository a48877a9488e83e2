package operator

// The moves of a call: which member each means, and that its server answers at
// the new address.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/resp"
)

// standing returns the function that Operate calls if no majority of the set
// answers, or nil if the call moves nothing.
//
// If a majority has moved at once, no majority answers at its recorded
// addresses, and without one no move can be decided. So this client dials each
// member of a move at its new address, because the operator says that the
// member's server has moved there. A member that answers at its recorded
// address is not dialed elsewhere: prepareMove refuses a copy of its data.
func (x *exchange) standing(ctx context.Context) func() error {
	if len(x.ask.Move) == 0 {
		return nil
	}
	return func() error {
		for c := x.config(); c != nil; c = x.config() {
			err := x.prepareMoves(ctx, c)
			if err == nil {
				var silent []nodeset.Member
				if silent, err = x.silent(ctx, c); len(silent) > 0 {
					x.standIn(c, silent)
					return nil
				}
			}
			switch {
			case x.config() != c: // it has found a later configuration in the meantime
			case err != nil:
				return &fault.Failure{Err: err}
			default:
				return nil
			}
		}
		return nil
	}
}

// standIn dials the members of these moves at their new addresses.
func (x *exchange) standIn(c *nodeset.Configuration, moves []nodeset.Member) {
	for _, to := range moves {
		member := &c.Members[c.Member(to.Identity)]
		x.stood = append(x.stood, member)
		x.q.Members.Change(-1, func(m *nodeset.Membership) { m.Stand(member, to.Addr) })
	}
}

// silent waits until each member that is moved answers at its recorded address,
// or has not done so for a guard time, or for a minute if that is shorter. It
// returns the moves of those that have not, none if a majority answers. A server
// that is only slow or restarts answers by then, and is refused if the new
// address leads to a copy of its data.
func (x *exchange) silent(ctx context.Context, c *nodeset.Configuration) ([]nodeset.Member, error) {
	tick := time.NewTicker(x.q.Set.NodeTimeout)
	defer tick.Stop()
	answers, heard := make([]bool, len(x.goal.Move)), make([]time.Time, len(x.goal.Move))
	for i := range heard {
		heard[i] = time.Now()
	}
	for {
		var silent []nodeset.Member
		waits := false
		for i := range x.goal.Move {
			member, answered := &c.Members[c.Member(x.goal.Move[i].Identity)], answers[i]
			if answers[i] = x.answers(member); x.loads(member) {
				heard[i] = time.Now()
			}
			if !answers[i] {
				if time.Since(heard[i]) < min(c.Guard(), time.Minute) {
					waits = true
				} else {
					silent = append(silent, x.goal.Move[i])
				}
				continue
			}
			heard[i] = time.Now()
			if !answered {
				if err := x.prepareMoves(ctx, c); err != nil {
					return nil, err
				}
			}
		}
		f, _ := x.q.Unready()
		switch {
		case f == nil || x.config() != c:
			return nil, nil
		case !waits:
			return silent, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, nil // Operate says that no majority has answered
		case <-x.q.Life.Done():
			return nil, nil
		}
	}
}

// loads reports whether the server at the recorded address of a member is about
// to answer: it has restarted, and reads its files.
func (x *exchange) loads(member *nodeset.Member) bool {
	n := x.q.Peers.Node(member.Number)
	if n == nil {
		return false
	}
	refusal, ok := errors.AsType[resp.Error](n.Err())
	return ok && refusal.Code() == "LOADING"
}

// answers reports whether a server answers at the recorded address of a member.
func (x *exchange) answers(member *nodeset.Member) bool {
	n := x.q.Peers.Node(member.Number)
	return n != nil && n.Err() == nil
}

// standDown ends what standing did. It has no effect on a member whose new
// address has been recorded.
func (x *exchange) standDown() {
	for _, member := range x.stood {
		x.q.Members.Change(-1, func(m *nodeset.Membership) { m.Stand(member, "") })
	}
}

// prepareMoves makes the goal of the moves. Each of them is of another member.
func (x *exchange) prepareMoves(ctx context.Context, c *nodeset.Configuration) error {
	x.goal.Move = nil
	for _, move := range x.ask.Move {
		member, to, err := x.prepareMove(ctx, move, c)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(x.goal.Move, func(m nodeset.Member) bool { return m.Identity == member.Identity }) {
			return fmt.Errorf("%w: %s is in more than one move", fault.ErrInvalid, move.From)
		}
		x.goal.Move = append(x.goal.Move, nodeset.Member{Identity: member.Identity, Addr: to})
		x.goal.Keep = move.Keep
	}
	return nil
}

// prepareMove finds out which member gets another address, and that it answers
// there.
func (x *exchange) prepareMove(ctx context.Context, m Move, c *nodeset.Configuration) (
	member *nodeset.Member, addr string, err error,
) {
	old, err := addresses([]string{m.From}, c)
	if err != nil {
		return nil, "", err
	}
	moved, err := x.nodes(m.To)
	if err != nil {
		return nil, "", err
	}
	from, to := c.Place(old[0]), moved[0]
	if from < 0 {
		err := notMember(old[0], c)
		if c.Place(to.Name()) >= 0 {
			err = fmt.Errorf("%w; %s is, so if this move was made before, there is nothing left to do", err, to.Name())
		}
		return nil, "", err
	}
	member = &c.Members[from]
	if all := member.All(); m.Keep && len(all) >= nodeset.MaxAddrs && !member.Has(to.Name()) {
		return nil, "", fmt.Errorf("%w: %s already has %d addresses, which is the maximum: %s; to drop all but "+
			"one, run quorate members move %s ADDRESS",
			fault.ErrInvalid, old[0], len(all), strings.Join(all, " "), old[0])
	}
	has, run, err := x.keeps(ctx, to)
	if err != nil {
		return nil, "", fmt.Errorf("%w: cannot read from %s: %w", fault.ErrInvalid, to.Name(), err)
	}
	if has.Identity != member.Identity {
		return nil, "", fmt.Errorf("%w: the server at %s does not have the data of %s. Move that server with its "+
			"data, or use quorate members replace", fault.ErrInvalid, to.Name(), old[0])
	}
	if err := x.sameServer(member, to.Name(), run, m.Keep); err != nil {
		return nil, "", err
	}
	return member, to.Name(), nil
}

// sameServer refuses an address of a member that leads to another server than
// the one which serves the member now, by the run of that. With keep that one
// has to answer: both addresses count.
//
// Invariant: all addresses of a member lead to one server. Without that clients
// that dial different ones have two servers with one identity, and both vote.
// So it is with a copy that the only member of a set is to have moved to: the
// clients of the server that goes on do not hear of the move.
func (x *exchange) sameServer(member *nodeset.Member, to, run string, keep bool) error {
	now, empty := "", false
	if n := x.q.Peers.Node(member.Number); x.answers(member) {
		now = n.Info().RunID
		has := n.Shown()
		empty = has != nil && has.Config == nil
	}
	switch {
	case empty && now != run:
		return fmt.Errorf("%w: an empty server answers at %s; stop it, or have the address lead nowhere from "+
			"here, so that other clients don't take it for the node that has moved",
			fault.ErrInvalid, member.Addr)
	case now == "" || run == "":
		if !keep {
			return nil
		}
		return fmt.Errorf("%w: %s does not answer, so %s may be a different server; start the first one, or leave "+
			"--keep out if its server has moved",
			fault.ErrInvalid, member.Addr, to)
	case now != run:
		return fmt.Errorf("%w: %s is a different server from %s, with a copy of its data, so both would vote; "+
			"stop one of them",
			fault.ErrInvalid, to, member.Addr)
	}
	return nil
}
