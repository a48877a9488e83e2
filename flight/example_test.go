package flight_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/flight"
)

// All replicas want today's rates. One of them asks the bank, at most once a
// minute.
func Example() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	rates := flight.New[map[string]float64](q, "rates:")
	ask := func(context.Context) (map[string]float64, error) {
		fmt.Println("asking the bank")
		return map[string]float64{"USD": 1.25}, nil
	}
	for replica := range 3 {
		r, err := rates.Do(ctx, "EUR", time.Minute, ask)
		fmt.Println("replica", replica, r["USD"], err)
	}
	// Output:
	// asking the bank
	// replica 0 1.25 <nil>
	// replica 1 1.25 <nil>
	// replica 2 1.25 <nil>
}
