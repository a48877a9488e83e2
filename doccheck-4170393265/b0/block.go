//line README.md:15
package program

import (
	"context"
	"log"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/mutex"
)

func main() {
	q, err := quorate.Connect(context.Background(), []string{"redis://a:6379", "redis://b:6379", "redis://c:6379"})
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	m := mutex.New(q, "invoices")
	m.Lock()
	defer m.Unlock()
	log.Print("no other process is here; token ", m.Lease().Token())
}
