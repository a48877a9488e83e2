package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// file writes a file for a test.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// A flag goes before the environment, and the environment before the file.
func TestWhereSettingsComeFrom(t *testing.T) {
	server := redistest.Start(t, 1).Node(0)
	// The marker of a recorded set.
	prefixed := func(prefix string) int { return len(server.Client().Keys(t.Context(), prefix+":{}:1.*").Val()) }
	config := file(t, "quorate.yaml",
		"# of the fleet\nnodes:\n  - "+server.URL()+"\nprefix: of-the-file\nguard: 30s\n")

	status, _, errs := call("bootstrap", "--new", "--config", config)
	require.Equal(t, 0, status, errs)
	require.Equal(t, 1, prefixed("of-the-file"))
	marker, err := server.Client().Get(t.Context(),
		server.Client().Keys(t.Context(), "of-the-file:{}:1.*").Val()[0]).Result()
	require.NoError(t, err)
	assert.Contains(t, marker, " 30000 ", "the guard time")

	t.Setenv("QUORATE_CONFIG", config)
	t.Setenv("QUORATE_PREFIX", "of-the-environment")
	status, _, errs = call("bootstrap", "--new")
	require.Equal(t, 0, status, errs)
	assert.Equal(t, 1, prefixed("of-the-environment"))

	status, _, errs = call("bootstrap", "--new", "--prefix", "of-the-flag")
	require.Equal(t, 0, status, errs)
	assert.Equal(t, 1, prefixed("of-the-flag"))
	status, _, errs = call("lock", "x", "--prefix", "of-the-flag", "--", "true")
	assert.Equal(t, 0, status, errs)
	assert.EqualValues(t, 1, server.Client().Exists(t.Context(), "of-the-flag:{x}").Val())
}

// A user, a password and TLS come from files. The password is read again for
// each command.
func TestAccessByFiles(t *testing.T) {
	ca, cert, key := certificates(t)
	server := tlsServer(t, ca, cert, key)
	addr := server.Addr()
	c := redis.NewClient(&redis.Options{Addr: addr, Password: "secret"})
	defer func() { _ = c.Close() }()
	require.NoError(t, c.Do(t.Context(), "ACL", "SETUSER", "app", "on",
		">of the app", "~*", "&*", "+@all").Err())
	user, password := file(t, "user", "app\n"), file(t, "password", "of the app\n")
	secure := "rediss://" + net.JoinHostPort("127.0.0.1", server.tls)
	access := []string{"--username-file", user, "--password-file", password, "--tls-ca", ca,
		"--tls-cert", cert, "--tls-key", key}

	status, _, errs := call(append([]string{"bootstrap", "--new", "--nodes", secure}, access...)...)
	require.Equal(t, 0, status, errs)
	status, _, errs = call(append([]string{"lock", "x", "--nodes", secure, "--wait", "20s"},
		append(access, "--", "true")...)...)
	require.Equal(t, 0, status, errs)
	status, out, _ := call(append([]string{"check", "--nodes", secure}, access...)...)
	assert.Equal(t, 0, status, out)

	status, _, errs = call("lock", "x", "--wait", "1s", "--nodes", secure, "--password-file",
		password, "--tls-ca", ca, "--", "true")
	assert.Equal(t, cli.ExitNoQuorum, status,
		"the server wants a certificate, and the default user has another password")
	assert.NotContains(t, errs, "of the app")
	status, _, errs = call(append([]string{"lock", "x", "--nodes", "redis://" + addr},
		append(access, "--", "true")...)...)
	assert.Equal(t, cli.ExitUsage, status)
	assert.Contains(t, errs, "rediss://")
	status, _, errs = call(append([]string{"check", "--nodes", "redis://" + addr}, access...)...)
	assert.Equal(t, cli.ExitUsage, status)
	assert.Contains(t, errs, "rediss://")
}

// The files are for the master of a Sentinel set, too. They do not go to the
// Sentinels, which have no such user.
func TestAccessByFilesToASentinelSet(t *testing.T) {
	servers := redistest.Start(t, 2, redistest.WithArgs("--min-replicas-to-write", "1")) // else check warns
	sentinels := redistest.StartSentinels(t, servers, "mymaster")
	master := servers.Node(0).Client()
	require.NoError(t, master.Do(t.Context(), "ACL", "SETUSER", "app", "on",
		">of the app", "~*", "&*", "+@all").Err())
	config := file(t, "quorate.yaml", "nodes: "+sentinels.URL()+"\nusername-file: "+file(t, "user", "app\n")+
		"\npassword-file: "+file(t, "password", "of the app\n"))

	status, _, errs := call("bootstrap", "--new", "--config", config)
	require.Equal(t, 0, status, errs)
	status, _, errs = call("lock", "x", "--config", config, "--wait", "20s", "--", "true")
	require.Equal(t, 0, status, errs)
	status, out, _ := call("check", "--config", config)
	assert.Equal(t, 0, status, out)
	assert.EqualValues(t, 1, master.Exists(t.Context(), "quorate:{x}").Val())

	wrong := file(t, "wrong", "another\n")
	status, _, errs = call("lock", "x", "--config", config, "--password-file", wrong,
		"--wait", "20s", "--", "true")
	assert.Equal(t, cli.ExitNoQuorum, status, errs)
	assert.Contains(t, errs, "WRONGPASS")
	assert.NotContains(t, errs, "another")
}

// What is wrong with the settings is an error of the command line, names where
// it stands, and quotes no password.
func TestWrongSettings(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	for _, c := range []struct {
		config string
		args   []string
		says   string
	}{
		{args: []string{"--config", missing}, says: "--config: open "},
		{config: "nodes: [a:1]\nnods: x", says: `line 2: unknown key "nods"`},
		{config: "nodes: a:1\nnodes: b:1", says: "line 2: the key nodes appears twice"},
		{config: "guard: hunter2", says: "guard must be a duration"},
		{config: "*hunter2", says: "not valid YAML"},
		{config: "prefix: x\nnodes: [*hunter2]", says: "not valid YAML"},
		{config: "prefix: x\nnodes: [a:1\nguard: hunter2: x", says: "not valid YAML: line "},
		{config: "nodes:\n  - 127.0.0.1:1\n  - 127.0.0.1: 2", says: "line 3: each node must be one address"},
		{config: "nodes:\n  - 127.0.0.1:1\n  -\n", says: "line 3: each node must be one address"},
		{config: "nodes: [a:1, [b:1, c:1]]", says: "line 1: each node must be one address"},
		{config: "prefix: [hunter2]", says: "the value of prefix must be a single string"},
		{config: "hunter2", says: "KEY: VALUE"},
		{config: "prefix: \"{\"\nnodes: 127.0.0.1:1", says: "--prefix \"{\": must not be empty, or contain braces"},
		{args: []string{"--username-file", missing}, says: "also pass --password-file"},
		{args: []string{"--password-file", missing}, says: "--password-file: open "},
		{args: []string{"--tls-cert", missing}, says: "--tls-cert and --tls-key: pass both"},
		{args: []string{"--tls-ca", missing}, says: "--tls-ca: open "},
		{args: []string{"--nodes", "127.0.0.1:1", "--guard", "1s"}, says: "--guard 1s is below 2*ttl + 2*skew"},
	} {
		args := append([]string{"lock", "x"}, c.args...)
		if c.config != "" {
			args = append(args, "--config", file(t, "quorate.yaml", c.config))
		}
		status, _, errs := call(append(args, "--", "true")...)
		assert.Equal(t, cli.ExitUsage, status, errs)
		assert.Contains(t, errs, c.says)
		assert.NotContains(t, errs, "With", "an option of Go")
		assert.NotContains(t, errs, "hunter2")
	}
}

func TestMessagesNameFlags(t *testing.T) {
	for text, want := range map[string]string{
		"WithGuard(1s) is below 36s; choose WithGuard(36s) or more, or a shorter WithTTL (now 8s)": "--guard 1s is below 36s; choose --guard 36s or more, or a shorter --ttl (now 8s)",
		`run "quorate bootstrap" or call Quorum.Bootstrap once: it ends the wait now`:              `run "quorate bootstrap" once: it ends the wait now`,
		"will wait longer (WithNodeTimeout is 200ms)":                                              "will wait longer (the node timeout is 200ms)",
		"use ForDevelopment() in this client too or":                                               "use --dev in this client too or",
		"WithinReach": "WithinReach",
	} {
		assert.Equal(t, want, cli.InFlags(text))
	}
}

// certificates makes an authority's certificate that is the server's and the
// client's, too.
func certificates(t *testing.T) (ca, cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	keyDER, err := x509.MarshalECPrivateKey(private)
	require.NoError(t, err)
	text := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return file(t, "ca.pem", text), file(t, "cert.pem", text),
		file(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})))
}

// secured is a server with a port for TLS.
type secured struct {
	*redistest.Server
	tls string
}

// tlsServer starts a server that wants a client's certificate, or skips the
// test if the server was built without TLS.
func tlsServer(t *testing.T, ca, cert, key string) secured {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, l.Close())
	c, err := redistest.Run(1, redistest.WithPassword("secret"), redistest.WithArgs("--tls-port", port,
		"--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", ca))
	redistest.SkipIfMissing(t, err)
	if err != nil && strings.Contains(err.Error(), "tls-port") {
		t.Skip("redis-server was built without TLS")
	}
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return secured{c.Node(0), port}
}
