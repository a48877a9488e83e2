package once_test

import (
	"bytes"
	"context"
	"encoding/gob"
	"fmt"
	"log"
	"os"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/once"
)

// inGob encodes values with encoding/gob.
type inGob struct{}

func (inGob) Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(v)
	return b.Bytes(), err
}

func (inGob) Unmarshal(data []byte, v any) error {
	return gob.NewDecoder(bytes.NewReader(data)).Decode(v)
}

// All users of a name must use the same codec.
func ExampleWithCodec() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	primes := once.Value(q, "primes", func() []int { return []int{2, 3, 5} }, once.WithCodec(inGob{}))
	fmt.Println(primes())
	_ = once.New(q, "primes").Reset(ctx) // for the next run of this example
	// Output:
	// [2 3 5]
}
