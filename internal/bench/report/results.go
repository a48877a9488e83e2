package report

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/samber/lo"
)

// Results is the results of a run, and the machine on which it ran.
type Results struct {
	Date       string            `json:"date"`
	Processors int               `json:"processors"` // processors that clients and servers share
	Platform   string            `json:"platform"`
	Go         string            `json:"go"`
	Redis      string            `json:"redis"`
	Versions   map[string]string `json:"versions"` // of the libraries
	Rounds     int               `json:"rounds"`
	TurnMS     int64             `json:"turn_ms"`
	Benches    []Result          `json:"benches"`
}

// Compared lists the modules whose versions are reported.
var Compared = []string{
	"github.com/go-redsync/redsync/v4", "github.com/redis/rueidis", "github.com/bsm/redislock",
	"github.com/redis/go-redis/v9",
}

// about describes in one line where the figures come from.
func (r *Results) about() string {
	versions := lo.FilterMap(Compared, func(m string, _ int) (string, bool) {
		v, ok := r.Versions[m]
		return m + " " + v, ok
	})
	return fmt.Sprintf("%s, %d processors, %s, %s, Redis %s; medians of %d rounds; %v",
		r.Date, r.Processors, r.Platform, r.Go, r.Redis, r.Rounds, versions)
}

func (r *Results) Write(file string) error {
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644) //nolint:gosec // a report for all users
}

func ReadResults(file string) (*Results, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var r Results
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return &r, nil
}
