package fence_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"

	"github.com/quorate/quorate/fence"
)

// An object store cannot compare numbers, but it has conditional writes. Keep the
// token in the object's metadata, and write only if nobody has written since it
// was read. The headers are those of S3; other stores have a generation or a
// version for If-Match.
func Example_objectStore() {
	put := func(ctx context.Context, client *http.Client, url, body string, token uint64) error {
		for {
			// 1. Read the version and its token.
			head, err := client.Head(url)
			if err != nil {
				return err
			}
			head.Body.Close()
			seen, _ := strconv.ParseUint(head.Header.Get("X-Amz-Meta-Token"), 10, 64)
			// 2. Compare.
			if seen > token {
				return fmt.Errorf("%w: its token is %d, and this one %d", fence.ErrStale, seen, token)
			}
			// 3. Write, unless the version has changed.
			req, err := http.NewRequestWithContext(ctx, http.MethodPut, url, strings.NewReader(body))
			if err != nil {
				return err
			}
			req.Header.Set("X-Amz-Meta-Token", strconv.FormatUint(token, 10))
			if etag := head.Header.Get("ETag"); etag != "" {
				req.Header.Set("If-Match", etag)
			} else {
				req.Header.Set("If-None-Match", "*")
			}
			resp, err := client.Do(req)
			if err != nil {
				return err
			}
			resp.Body.Close()
			switch {
			case resp.StatusCode < 300:
				return nil
			case resp.StatusCode != http.StatusPreconditionFailed && resp.StatusCode != http.StatusConflict:
				return errors.New(resp.Status)
			}
			// 4. Another process was faster: start over.
		}
	}

	var mu sync.Mutex // the rest simulates the store
	object, token, version := "", "", 0
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		etag := fmt.Sprintf("%q", strconv.Itoa(version))
		if r.Method == http.MethodHead {
			if version > 0 {
				w.Header().Set("ETag", etag)
				w.Header().Set("X-Amz-Meta-Token", token)
			}
			return
		}
		if match := r.Header.Get("If-Match"); match != etag && (version > 0 || match != "") {
			w.WriteHeader(http.StatusPreconditionFailed)
			return
		}
		body, _ := io.ReadAll(r.Body)
		object, token = string(body), r.Header.Get("X-Amz-Meta-Token")
		version++
	}))
	defer store.Close()

	ctx := context.Background()
	if err := put(ctx, store.Client(), store.URL, "first", 1838381800842592256); err != nil {
		log.Fatal(err)
	}
	if err := put(ctx, store.Client(), store.URL, "second", 1838381800842592257); err != nil {
		log.Fatal(err)
	}
	err := put(ctx, store.Client(), store.URL, "late", 1838381800842592256)
	fmt.Println(err)
	fmt.Println(object)
	// Output:
	// a later holder has been here: its token is 1838381800842592257, and this one 1838381800842592256
	// second
}
