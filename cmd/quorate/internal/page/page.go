// Package page serves what a board shows as one page to browsers on this
// machine, with a stream of server-sent events. It only shows.
//
// A page of another site, and another user of this machine, must see nothing:
// each request needs the token of the URL, and the name of this server as its
// host, which a page of another site does not get by rebinding its own name.
package page

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/cmd/quorate/internal/board"
)

//go:embed page.html
var document string

// MostViewers is how many streams are open at a time.
const MostViewers = 16

// patience is how long a viewer may take to read an event.
const patience = 10 * time.Second

// Local returns the address to listen on, or an error if another machine could
// connect to it.
func Local(listen string) (string, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", fmt.Errorf("%q is not an address: use host:port, such as 127.0.0.1:0", listen)
	}
	if host == "localhost" {
		host = "127.0.0.1" // the name may lead elsewhere
	}
	if ip, err := netip.ParseAddr(host); err != nil || !ip.IsLoopback() {
		return "", fmt.Errorf("%q can be reached from other machines, and the page has names and hosts of "+
			"processes without encryption: listen on 127.0.0.1 or [::1], and reach it from elsewhere through ssh "+
			"-L", listen)
	}
	return net.JoinHostPort(host, port), nil
}

// Page is one page and its viewers. All methods may be called at the same time.
type Page struct {
	token  string
	hosts  []string
	policy string

	mu      sync.Mutex
	newest  []byte
	viewers map[chan []byte]bool
	closed  chan struct{}
}

// New returns the page of a server that listens on addr.
func New(addr *net.TCPAddr) *Page {
	return &Page{
		token:   rand.Text(),
		hosts:   []string{addr.String(), fmt.Sprintf("localhost:%d", addr.Port)},
		policy:  policy(),
		viewers: map[chan []byte]bool{},
		closed:  make(chan struct{}),
	}
}

// policy allows the script and the style of the document, and its own stream.
func policy() string {
	hash := func(tag string) string {
		_, rest, _ := strings.Cut(document, "<"+tag+">")
		text, _, _ := strings.Cut(rest, "</"+tag+">")
		sum := sha256.Sum256([]byte(text))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; script-src " + hash("script") + "; style-src " + hash("style") +
		"; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}

// URL is what to open.
func (p *Page) URL() string {
	return (&url.URL{Scheme: "http", Host: p.hosts[0], Path: "/", RawQuery: "token=" + p.token}).String()
}

// Show sends a view to all viewers. One that is slow gets the newest only.
func (p *Page) Show(v board.View) {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // a view has only what JSON has
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.newest = text
	for viewer := range p.viewers {
		select {
		case <-viewer:
		default:
		}
		viewer <- text // only Show sends, so there is room
	}
}

// Close ends all streams.
func (p *Page) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.closed:
	default:
		close(p.closed)
	}
}

// ServeHTTP implements [http.Handler].
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", p.policy)
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	if r.Body != nil {
		r.Body = http.MaxBytesReader(w, r.Body, 0) // no request has one, and the server reads none
	}
	switch {
	case r.Body != nil && r.ContentLength != 0:
		h.Set("Connection", "close")
		http.Error(w, "this page does not accept data", http.StatusRequestEntityTooLarge)
	case r.Host != p.hosts[0] && r.Host != p.hosts[1]:
		http.Error(w, "this server does not have that name: open the URL that quorate ui printed",
			http.StatusMisdirectedRequest)
	case subtle.ConstantTimeCompare([]byte(r.URL.Query().Get("token")), []byte(p.token)) != 1:
		http.Error(w, "the token is missing or wrong: open the URL that quorate ui printed", http.StatusForbidden)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		http.Error(w, "this page is read-only", http.StatusMethodNotAllowed)
	case r.URL.Path == "/":
		h.Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(document))
	case r.URL.Path == "/events" && r.Method == http.MethodGet:
		p.stream(w, r)
	default:
		http.NotFound(w, r)
	}
}

// stream sends views until the viewer leaves.
func (p *Page) stream(w http.ResponseWriter, r *http.Request) {
	viewer := make(chan []byte, 1)
	if !p.enter(viewer) {
		http.Error(w, fmt.Sprintf("%d pages are open already: close one", MostViewers),
			http.StatusServiceUnavailable)
		return
	}
	defer p.leave(viewer)
	w.Header().Set("Content-Type", "text/event-stream")
	to := http.NewResponseController(w)
	_ = to.SetReadDeadline(time.Time{}) // the server's bounds the request, which has been read
	for text := []byte("retry: 1000\n\n"); ; {
		if err := to.SetWriteDeadline(time.Now().Add(patience)); err != nil {
			return
		}
		if _, err := w.Write(text); err != nil {
			return
		}
		if err := to.Flush(); err != nil {
			return
		}
		select {
		case v := <-viewer:
			text = fmt.Appendf(nil, "data: %s\n\n", v)
		case <-r.Context().Done():
			return
		case <-p.closed:
			return
		}
	}
}

func (p *Page) enter(viewer chan []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.viewers) >= MostViewers {
		return false
	}
	p.viewers[viewer] = true
	if p.newest != nil {
		viewer <- p.newest
	}
	return true
}

func (p *Page) leave(viewer chan []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.viewers, viewer)
}
