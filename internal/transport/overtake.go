package transport

import (
	"context"
	"time"

	"github.com/quorate/quorate/internal/resp"
)

// This file owns when a handshake that hears nothing is given up before its
// time: when a connection that was opened later is answered first.

// overtake opens connections beside one whose handshake is patient and has
// heard nothing for a Stall, one at a time, a Stall each. When one of them is
// answered it calls lost. They only log in: no command that changes anything
// goes out on two connections. heard is closed when something was heard.
//
// Note: Here is an incorrect version: to wait for the patient one alone. What
// forwards connections accepts one also while packets are lost, and those that
// it lost do not come again. After a cut of 20 s a node that works would stay
// unused for up to 16 s more.
func (d *dialer) overtake(ctx context.Context, heard <-chan struct{}, lost context.CancelCauseFunc) {
	t := time.NewTimer(d.cfg.Stall)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-heard:
			return
		case <-ctx.Done():
			return
		}
		if !d.responds(ctx) {
			t.Reset(minBackoff)
			continue
		}
		select {
		case <-heard:
		default:
			lost(errStalled) // no timeout: the next attempt is not more patient
		}
		return
	}
}

// responds reports whether the node answers on a connection of its own.
func (d *dialer) responds(ctx context.Context) bool {
	o, err := d.open(ctx, d.cfg.Stall)
	if err != nil {
		return false
	}
	defer o.close()
	stop := context.AfterFunc(ctx, o.close)
	defer stop()
	s := &steady{Conn: o.nc, timeout: d.cfg.Stall}
	if _, err := s.Write(appendSteps(nil, o.login)); err != nil {
		return false
	}
	_, err = resp.NewReader(s).Read()
	_, refused := err.(resp.Error)
	return err == nil || refused
}
