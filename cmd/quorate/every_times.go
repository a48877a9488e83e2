package main

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // a container may have no time zones, and all hosts should have the same

	"github.com/robfig/cron/v3"
	"github.com/spf13/cobra"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/period"
)

// times is when the command of "quorate every" is due: every so long, or by a
// line of a crontab.
type times struct {
	every   time.Duration
	line    cron.Schedule // nil: every counts
	zone    string
	offset  time.Duration
	catchUp bool
	loc     *time.Location
}

func (ts *times) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&ts.zone, "zone", "",
		"time zone of a crontab line, such as Europe/Berlin (default: UTC)")
	cmd.Flags().DurationVar(&ts.offset, "offset", 0, "how much later each period starts")
	cmd.Flags().BoolVar(&ts.catchUp, "catch-up", false,
		"with a crontab line, catch up on the last run if it was missed")
}

// parse returns the times for the PERIOD of a command line.
func (ts times) parse(name, text string) (times, error) {
	every, err := time.ParseDuration(text)
	switch _, first := time.ParseDuration(name); {
	case err == nil:
		ts.every = every
	case first == nil:
		return ts, fmt.Errorf("every: the name comes before the period: quorate every %s %s", text, name)
	case strings.ContainsAny(text, " \t@"):
		if ts.line, err = crontab(text); err != nil {
			return ts, err
		}
	default:
		return ts, fmt.Errorf("the period %q: must be a whole number of milliseconds from 10ms to fifty years, "+
			"such as 90s, 15m or 24h, or a crontab line in quotes, such as '0 2 * * *'", text)
	}
	switch {
	case ts.line == nil && (every < 10*time.Millisecond || every > 50*365*24*time.Hour ||
		every%time.Millisecond != 0):
		return ts, fmt.Errorf("the period %q: must be a whole number of milliseconds from 10ms to fifty years, "+
			"such as 90s, 15m or 24h", text)
	case ts.line == nil && (ts.zone != "" || ts.catchUp):
		return ts, fmt.Errorf("--zone and --catch-up need a crontab line, such as '0 2 * * *': periods of %s "+
			"begin at its multiples in UTC, and their run may begin at any time until the next one", text)
	case ts.offset < 0 || ts.offset%time.Millisecond != 0 || ts.line == nil && ts.offset >= every:
		return ts, fmt.Errorf("--offset %v: must be a whole number of milliseconds, at least 0 and less than the "+
			"period",
			ts.offset)
	}
	if ts.loc, err = time.LoadLocation(ts.zone); err != nil {
		return ts, fmt.Errorf("--zone %q: must be a name of the time zone database, such as Europe/Berlin, or "+
			"Local", ts.zone)
	}
	return ts, nil
}

// crontab reads a line of a crontab.
func crontab(text string) (cron.Schedule, error) {
	s, err := cron.ParseStandard(text)
	_, spec := s.(*cron.SpecSchedule)
	switch {
	case strings.HasPrefix(text, "TZ=") || strings.HasPrefix(text, "CRON_TZ="):
		return nil, fmt.Errorf("the crontab line %q: pass its time zone with --zone instead", text)
	case err != nil:
		return nil, fmt.Errorf("the crontab line %q: %w. It has five fields: minute, hour, day of the month, "+
			"month, day of the week", text, err)
	case !spec:
		return nil, errors.New("@every counts from the start of each process: pass the length alone, such as 90s, " +
			"15m or 24h")
	case s.Next(time.Now()).IsZero():
		return nil, fmt.Errorf("the crontab line %q never fires: check the day and the month", text)
	}
	return s, nil
}

// period returns the job.
func (ts times) period(q *quorate.Quorum, name string, opts []quorate.PeriodOption) *period.Period {
	opts = append(opts, period.WithOffset(ts.offset))
	if ts.line == nil {
		return period.New(q, name, ts.every, opts...)
	}
	opts = append(opts, period.WithZone(ts.loc))
	if ts.catchUp {
		opts = append(opts, period.WithCatchUp())
	}
	return period.NewScheduled(q, name, ts.line, opts...)
}
