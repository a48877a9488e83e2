package fence

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
)

// Header is the request header with the token, in decimal digits. When
// [Handler] rejects a stale token, its response has the highest token in this
// header.
const Header = "Quorate-Fence"

// Handler returns a handler that calls next only for requests whose token is at
// least as high as the highest one seen for the name. Requests from one holder
// may run concurrently, but next never runs for two holders at the same time: a
// request from a later holder waits until the requests from earlier holders are
// done, or until its own context is done.
//
// Wrap only handlers that write. A request that is rejected gets a line of text
// that says why:
//
//	412  the token is stale: the client must stop the work
//	428  there is no token
//	400  the header is not a token
//	503  the store failed, or an earlier holder's request was still running
//
// Handler panics if the name is empty, longer than 255 bytes, or not UTF-8.
func Handler(store Store, name string, next http.Handler) http.Handler {
	if err := validName(name); err != nil {
		panic(err)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.Header.Values(Header)) == 0 {
			text := fmt.Sprintf("fence %q: send the token of your hold in the header %s", name, Header)
			http.Error(w, text, http.StatusPreconditionRequired)
			return
		}
		token, err := Token(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		leave, err := store.Enter(r.Context(), name, token)
		if err != nil {
			refuse(w, r, name, err)
			return
		}
		defer leave() // also if next panics
		next.ServeHTTP(w, r)
	})
}

func refuse(w http.ResponseWriter, r *http.Request, name string, err error) {
	if s := (*stale)(nil); errors.As(err, &s) {
		w.Header().Set(Header, strconv.FormatUint(s.highest, 10))
	}
	if errors.Is(err, ErrStale) {
		http.Error(w, err.Error(), http.StatusPreconditionFailed)
		return
	}
	// The error may show what is no business of the client's.
	slog.WarnContext(r.Context(), "fence: refused a request because its token cannot be checked",
		"name", name, "error", err)
	text := fmt.Sprintf("fence %q: the token cannot be checked now: try again", name)
	http.Error(w, text, http.StatusServiceUnavailable)
}

// Token returns a request's token. It returns an error if the header is
// missing, occurs more than once, or is not a token.
func Token(r *http.Request) (uint64, error) {
	values := r.Header.Values(Header)
	if len(values) != 1 {
		return 0, fmt.Errorf("the request has %d headers %s, not one", len(values), Header)
	}
	token, err := strconv.ParseUint(values[0], 10, 63)
	if err != nil || token == 0 {
		return 0, fmt.Errorf("the header %s holds no token: send the lease's Token in decimal digits", Header)
	}
	return token, nil
}

// Transport returns a transport that adds the token to each request. Create one
// for each hold: it is small, and it shares the connections of base. If base is
// nil, it uses [http.DefaultTransport]. If the token is stale, a service that
// uses [Handler] responds with 412.
func Transport(base http.RoundTripper, token uint64) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	return &transport{base, strconv.FormatUint(token, 10)}
}

type transport struct {
	base  http.RoundTripper
	token string
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context()) // a RoundTripper must not change the request
	r.Header.Set(Header, t.token)
	return t.base.RoundTrip(r)
}
