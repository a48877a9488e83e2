package fragment

import (
	context "context"
	quorate "github.com/quorate/quorate"
	mutex "github.com/quorate/quorate/mutex"
	sql "database/sql"
	x509 "crypto/x509"
	tls "crypto/tls"
	redis "github.com/redis/go-redis/v9"
	http "net/http"
	strconv "strconv"
	errors "errors"
	bytes "bytes"
)

var (
	ctx         context.Context
	q           *quorate.Quorum
	m           *mutex.Mutex
	db          *sql.DB
	doc         string
	password    string
	pool        *x509.CertPool
	certificate tls.Certificate
	nodes       []redis.UniversalClient
	store       interface{ Put(context.Context, string, uint64) error }
)

func export(context.Context) error           { return nil }
func migrate(context.Context) error          { return nil }
func load() string                           { return "" }
func schedule(context.Context, uint64)       {}
func work()                                  {}

//line docs/fencing.md:49
// Puts the object unless one with a higher token is there. It returns errFenced if so.
func put(ctx context.Context, url string, body []byte, token uint64) error {
	for ctx.Err() == nil {
		head, err := http.Head(url)
		if err != nil {
			return err
		}
		head.Body.Close()
		seen, _ := strconv.ParseUint(head.Header.Get("X-Amz-Meta-Token"), 10, 64)
		if seen > token {
			return errors.New("fenced: a later holder has written")
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, url, bytes.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("X-Amz-Meta-Token", strconv.FormatUint(token, 10))
		if etag := head.Header.Get("ETag"); etag != "" {
			req.Header.Set("If-Match", etag)
		} else {
			req.Header.Set("If-None-Match", "*")
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusPreconditionFailed {
			return nil
		}
	}
	return ctx.Err()
}
