package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/bench/report"
	"github.com/quorate/quorate/internal/bench/servers"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/redis/go-redis/v9"
	"github.com/samber/lo"
)

func measureAll(s settings) (*report.Results, error) {
	redis.SetLogger(quiet{})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	todo := lo.Filter(allBenches(s), func(b bench, _ int) bool { return s.filter.MatchString(b.Name) })
	if len(todo) == 0 {
		return nil, fmt.Errorf("no bench matches -run %v", s.filter)
	}
	r, err := newResults(ctx, s)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	for _, b := range todo {
		fmt.Fprintf(os.Stderr, "%5.0fs %s: %s\n", time.Since(began).Seconds(), b.Name, b.Title)
		result, err := measureOne(ctx, b, s)
		if errors.Is(err, servers.ErrNoCounter) {
			fmt.Fprintf(os.Stderr, "%s: left out: %v\n", b.Name, err)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.Name, err)
		}
		r.Benches = append(r.Benches, result)
	}
	return r, nil
}

// measureOne runs all rounds of one bench, on servers of its own.
func measureOne(ctx context.Context, b bench, set settings) (report.Result, error) {
	r := report.Result{
		Name: b.Name, Group: b.Group, Series: b.Series, X: b.X, Title: b.Title, Show: b.Show,
		Figures: map[string]map[string]report.Spread{}, Ratios: map[string]map[string]report.Spread{},
	}
	st := stage{libs: set.libs}
	defer st.close()
	const patience = 3 * time.Minute // for the setup, including 100,000 locks
	opening, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := b.open(opening, &st); err != nil {
		return r, err
	}
	d := set.duration
	if st.stretch > 0 {
		d = time.Duration(float64(d) * st.stretch)
	}
	turns := map[string][]report.Figures{}
	for _, s := range st.sides {
		r.Sides = append(r.Sides, s.name)
		if st.single {
			continue
		}
		// Warm up connections, pools and caches.
		if _, err := s.turn(ctx, d/2); err != nil {
			return r, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	for range lo.Ternary(st.single, 1, set.rounds) {
		for _, s := range st.sides {
			f, err := s.turn(ctx, d)
			if err != nil {
				return r, fmt.Errorf("%s: %w", s.name, err)
			}
			turns[s.name] = append(turns[s.name], f)
		}
	}
	r.Collect(turns)
	if st.profile == nil {
		return r, nil
	}
	var err error
	r.Flame, err = st.profile(ctx, d)
	return r, err
}

func newResults(ctx context.Context, s settings) (*report.Results, error) {
	c, err := redistest.Run(1)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	r := &report.Results{
		Date: time.Now().UTC().Format(time.DateOnly), Processors: runtime.NumCPU(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(),
		Versions: map[string]string{}, Rounds: s.rounds, TurnMS: s.duration.Milliseconds(),
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if slices.Contains(report.Compared, d.Path) {
				r.Versions[d.Path] = d.Version
			}
		}
	}
	r.Redis, err = servers.Direct(c).Version(ctx)
	return r, err
}

// quiet keeps go-redis from logging every attempt to reach a node that is
// deliberately down.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}
