//go:build browser

package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cmd/quorate/internal/board"
	"github.com/quorate/quorate/cmd/quorate/internal/page"
	"github.com/quorate/quorate/inspect"
)

// fleet plays five minutes of a fleet, second by second: what the documents
// show.
type fleet struct {
	second int
	now    time.Time
}

// who is a process of the fleet.
func (f *fleet) who(pid int, host, label string, since int, left time.Duration) inspect.Claim {
	at := f.now.Add(time.Duration(since-f.second) * time.Second)
	return inspect.Claim{PID: pid, Host: host, Label: label, Since: at,
		Token: uint64(at.UnixMicro())<<10 + uint64(pid), Left: left, Weight: 1, Votes: 3}
}

// alive is what a lease has left that is renewed each third of 8 s.
func (f *fleet) alive() time.Duration {
	return time.Duration(8-f.second%3)*time.Second - 300*time.Millisecond
}

func (f *fleet) observe() board.Observation {
	o := board.Observation{At: f.now, Quorum: 2, Ready: 3, Joined: 3, Whole: true, Counted: true}
	for i := range 3 {
		o.Nodes = append(o.Nodes, board.Node{Name: fmt.Sprintf("lock-%c:6379", 'a'+i), State: "ready", Up: true})
	}
	switch b, c := &o.Nodes[1], &o.Nodes[2]; {
	case f.second >= 70 && f.second < 95:
		*b = board.Node{Name: b.Name, State: "unreachable",
			Cause: "dial tcp 10.0.3.12:6379: connect: connection refused"}
	case f.second >= 95 && f.second < 115:
		*b = board.Node{Name: b.Name, State: fmt.Sprintf("votes in %ds", 115-f.second), Up: true,
			Recovering: float64(115 - f.second)}
	case f.second >= 268:
		*c = board.Node{Name: c.Name, State: "unreachable",
			Cause: "dial tcp 10.0.3.13:6379: i/o timeout: the node or the network is down or slow"}
	}
	for _, n := range o.Nodes {
		if !n.Up || n.Recovering > 0 {
			o.Ready--
		}
	}
	for _, r := range f.names() {
		for _, n := range o.Nodes {
			says := inspect.Node{Node: n.Name, Queued: len(r.Holders) + len(r.Waiters)}
			for _, h := range r.Holders {
				says.Tokens = append(says.Tokens, h.Token)
			}
			if !n.Up {
				says = inspect.Node{Node: n.Name, Err: fmt.Errorf("%s", n.Cause)}
			}
			r.Nodes = append(r.Nodes, says)
		}
		o.Names = append(o.Names, board.Look{At: f.now, Report: r})
	}
	o.Total = len(o.Names)
	return o
}

func (f *fleet) names() (all []inspect.Report) {
	s, alive := f.second, f.alive()
	add := func(name string, kind inspect.Kind, holders, waiters []inspect.Claim) *inspect.Report {
		all = append(all, inspect.Report{Name: name, Kind: kind, Quorum: 2, Holders: holders, Waiters: waiters})
		return &all[len(all)-1]
	}
	// Four replicas take turns with the invoices of a customer each.
	const turn = 17
	var queue []inspect.Claim
	for i := range 4 {
		n := s/turn + i
		queue = append(queue, f.who(4100+n%4, fmt.Sprintf("billing-%d", n%4+1), "", n*turn-3*turn, alive))
	}
	if s%120 < 100 {
		add("invoices", inspect.Mutex, queue[:1], queue[1:2+s/turn%3])
	}
	// The process with the report stops at 205, loses the lock, and the next one takes over.
	switch report := f.who(812, "cron-1", "", 60, alive); {
	case s < 60:
	case s < 255:
		if s > 247 {
			report.Left = time.Duration(255-s) * time.Second
		}
		add("nightly-report", inspect.Mutex, []inspect.Claim{report},
			[]inspect.Claim{f.who(977, "cron-2", "", 150, alive)})
	default:
		add("nightly-report", inspect.Mutex, []inspect.Claim{f.who(977, "cron-2", "", 150, alive)}, nil)
	}
	// Three permits of encoders, five workers.
	var holders, waiters []inspect.Claim
	for i := range 5 {
		c := f.who(2200+i, fmt.Sprintf("encode-%d", i+1), "", (s-i*13)/40*40-30, alive)
		if (s/13+i)%5 < 3 {
			holders = append(holders, c)
		} else {
			waiters = append(waiters, c)
		}
	}
	add("encoders", inspect.Semaphore, holders, waiters).Capacity = 3
	leader := add("scheduler", inspect.Leader, []inspect.Claim{f.who(31, "api-2", "", -4000, alive)},
		[]inspect.Claim{f.who(30, "api-1", "", -3990, alive), f.who(33, "api-3", "", -3800, alive)})
	leader.Record = &inspect.Record{ID: "api-2:31", Token: leader.Holders[0].Token,
		At: f.now.Add(-time.Hour), Nodes: 3}
	var cleaning []inspect.Claim
	if s%60 < 9 {
		cleaning = []inspect.Claim{f.who(640+s/60, fmt.Sprintf("api-%d", s/60%3+1), "", s/60*60, alive)}
	}
	add("clean-sessions", inspect.Period, cleaning, nil).Record = &inspect.Record{Token: 1,
		At: f.now.Add(-time.Duration(s%60) * time.Second), Nodes: 3}
	// A holder that is stopped: it renews nothing from 290 on.
	export := f.who(5120, "worker-7", "export", 180, alive)
	if s >= 292 {
		export.Left = time.Duration(300-s)*time.Second + 900*time.Millisecond
	}
	if s >= 180 {
		add("export:customer:4711", inspect.Mutex, []inspect.Claim{export},
			[]inspect.Claim{f.who(5121, "worker-3", "export", 262, alive)})
	}
	add("migrate-v7", inspect.Once, nil, nil).Record = &inspect.Record{Host: "api-1", PID: 30, Token: 1,
		At: f.now.Add(-49 * time.Hour), Nodes: 3}
	add("exchange-rates", inspect.Flight, nil, nil).Record = &inspect.Record{Token: 1,
		At: f.now.Add(-time.Duration(s%45) * time.Second), Nodes: 3}
	return all
}

// The pictures of the documents, and what one sees at other sizes.
func TestPictures(t *testing.T) {
	if os.Getenv("QUORATE_PICTURES") == "" {
		t.Skip("it takes pictures: make page PICTURES=docs/pictures")
	}
	b, began := board.New(), time.Date(2026, 11, 28, 3, 49, 0, 0, time.UTC)
	for s := range 299 {
		f := fleet{second: s, now: began.Add(time.Duration(s) * time.Second)}
		b.Observe(f.observe())
	}
	v := b.View()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := page.New(l.Addr().(*net.TCPAddr))
	server := &http.Server{Handler: p}
	ended := make(chan struct{})
	go func() { _ = server.Serve(l); close(ended) }()
	t.Cleanup(func() { p.Close(); _ = server.Close(); <-ended })

	w := startBrowser(t)
	w.call("Emulation.setTimezoneOverride", map[string]any{"timezoneId": "UTC"})
	w.look(1280, 1500, "light")
	w.call("Page.navigate", map[string]any{"url": p.URL()})
	w.until("document.readyState === 'complete'")
	require.Equal(t, false, w.eval("document.querySelector('main').checkVisibility()"),
		"no headings without anything below them")
	p.Show(v)
	w.shows("names", "invoices mutex")
	for _, size := range []struct {
		name          string
		width, height int
	}{{"ui", 1280, 1150}, {"ui-phone", 390, 900}} {
		for _, scheme := range []string{"light", "dark"} {
			w.look(size.width, size.height, scheme)
			w.until("document.documentElement.scrollWidth <= innerWidth")
			w.picture(size.name + map[string]string{"light": "", "dark": "-dark"}[scheme] + ".png")
		}
	}
	w.look(1280, 1700, "light")
	w.eval(`[...document.querySelectorAll("#names button")].find((b) => b.textContent === "nightly-report").click()`)
	w.shows("detail", "nightly-report")
	w.picture("ui-name.png")
	w.pictureOfTop(&v)
}
