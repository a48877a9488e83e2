package quoratecertmagic_test

import (
	"context"
	"log"
	"net/http"
	"os"

	"github.com/caddyserver/certmagic"

	"github.com/quorate/quorate"
	quoratecertmagic "github.com/quorate/quorate/compat/certmagic"
)

// Every replica does this at startup. They share a folder, and one of them
// obtains each certificate.
func Example() {
	_ = func(ctx context.Context) error {
		q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
		if err != nil {
			return err
		}
		defer q.Close()
		certmagic.Default.Storage = quoratecertmagic.New(&certmagic.FileStorage{Path: "/mnt/shared/certificates"},
			q)
		return certmagic.HTTPS([]string{"example.com"}, http.NotFoundHandler())
	}
}

// You can also lock a name yourself, the way CertMagic does.
func ExampleStorage_Lock() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	s := quoratecertmagic.New(&certmagic.FileStorage{Path: os.TempDir()}, q)
	if err := s.Lock(ctx, "clean up"); err != nil {
		log.Fatal(err)
	}
	defer func() {
		if err := s.Unlock(ctx, "clean up"); err != nil {
			log.Print(err)
		}
	}()
	// Output:
}
