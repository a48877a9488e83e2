package quoratecertmagic_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/quorate/quorate"
	quoratecertmagic "github.com/quorate/quorate/compat/certmagic"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/internal/testkit/worker"
)

// workerEnv makes this test binary a worker, with the terms it holds.
const workerEnv = "QUORATE_CERTMAGIC_WORKER"

func TestMain(m *testing.M) {
	var tm terms
	if ok, err := worker.Terms(workerEnv, &tm); ok {
		if err == nil {
			err = work(tm)
		}
		fmt.Println("ended", err)
		return
	}
	e2e.MainWithNodes(m)
}

// terms are what a worker gets at its start.
type terms struct {
	URLs   []string
	Folder string // of the storage that all share
	Rounds int    // of locking one name; 0: it obtains a certificate
}

func work(tm terms) error {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, tm.URLs, quorate.WithLogger(nil))
	if err != nil {
		return err
	}
	defer q.Close()
	s := quoratecertmagic.New(&certmagic.FileStorage{Path: tm.Folder}, q)
	for range tm.Rounds {
		if err := critical(ctx, s, filepath.Join(tm.Folder, "inside")); err != nil {
			return err
		}
		fmt.Println("was in")
	}
	if tm.Rounds > 0 {
		return nil
	}
	var cfg *certmagic.Config
	cache := certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return cfg, nil },
		Logger:           zap.NewNop(),
	})
	defer cache.Stop()
	cfg = certmagic.New(cache, certmagic.Config{Storage: s,
		Issuers: []certmagic.Issuer{issuer{tm.Folder}}, Logger: zap.NewNop()})
	return cfg.ObtainCertSync(ctx, "example.com")
}

// critical makes a file that must not be there, under the lock.
func critical(ctx context.Context, s *quoratecertmagic.Storage, file string) error {
	if err := s.Lock(ctx, "one name"); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		err = errors.Join(s.RenewLockLease(ctx, "one name", time.Minute), f.Close(), os.Remove(file))
	}
	return errors.Join(err, s.Unlock(ctx, "one name"))
}

// issuer signs by itself. While there is a file named slow, it takes for ever.
type issuer struct{ folder string }

func (issuer) IssuerKey() string { return "test" }

func (i issuer) Issue(ctx context.Context,
	csr *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	fmt.Println("issuing")
	for {
		if _, err := os.Stat(filepath.Join(i.folder, "slow")); err != nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: csr.DNSNames, NotBefore: time.Now(),
		NotAfter: time.Now().Add(24 * time.Hour),
	}, &x509.Certificate{SerialNumber: big.NewInt(1)}, csr.PublicKey, key)
	return &certmagic.IssuedCertificate{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: der})}, err
}

// start starts n workers, and returns what they report.
func start(t *testing.T, n int, tm terms) (all []*worker.Worker, lines chan string) {
	lines = make(chan string, 1000)
	for range n {
		cmd, err := worker.Self(workerEnv, tm)
		require.NoError(t, err)
		w, err := worker.Start(cmd, func(line string) { lines <- line })
		require.NoError(t, err)
		t.Cleanup(func() { _ = w.Kill() })
		all = append(all, w)
	}
	return all, lines
}

// Five processes lock one name on three real servers, 20 times each. No two are
// in at once, and one that is killed holds nobody up.
func TestFleet(t *testing.T) {
	c := redistest.Start(t, 3)
	q := e2e.Open(t, c)
	folder := t.TempDir()
	dies, lines := start(t, 1, terms{URLs: c.URLs(), Folder: folder, Rounds: 1 << 30})
	require.Equal(t, "was in", e2e.ReceiveWithin(t, e2e.Patience, lines))
	require.NoError(t, dies[0].Kill())
	if err := os.Remove(filepath.Join(folder, "inside")); err != nil { // it may have died inside
		require.ErrorIs(t, err, os.ErrNotExist)
	}
	_, lines = start(t, 5, terms{URLs: c.URLs(), Folder: folder, Rounds: 20})
	seen := map[string]int{}
	for range 5 * 21 {
		seen[e2e.ReceiveWithin(t, 3*e2e.Patience, lines)]++
	}
	assert.Equal(t, map[string]int{"was in": 100, "ended <nil>": 5}, seen)
	require.NoError(t, q.Close())
}

// Four processes want one certificate, and the one that obtains it is killed in
// the middle. Another one obtains it, and the others find it.
func TestOneCertificate(t *testing.T) {
	c := redistest.Start(t, 3)
	q := e2e.Open(t, c)
	folder := t.TempDir()
	slow := filepath.Join(folder, "slow")
	require.NoError(t, os.WriteFile(slow, nil, 0o600))
	first, lines := start(t, 1, terms{URLs: c.URLs(), Folder: folder})
	require.Equal(t, "issuing", e2e.ReceiveWithin(t, e2e.Patience, lines))
	_, lines = start(t, 3, terms{URLs: c.URLs(), Folder: folder})
	s := quoratecertmagic.New(&certmagic.FileStorage{Path: folder}, q)
	ok, err := s.TryLock(t.Context(), "issue_cert_example.com")
	require.NoError(t, err)
	require.False(t, ok)
	require.NoError(t, first[0].Kill())
	require.NoError(t, os.Remove(slow))
	seen := map[string]int{}
	for range 4 {
		seen[e2e.ReceiveWithin(t, 3*e2e.Patience, lines)]++
	}
	assert.Equal(t, map[string]int{"issuing": 1, "ended <nil>": 3}, seen)
}
