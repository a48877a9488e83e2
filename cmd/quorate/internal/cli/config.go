package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// This file owns the settings of the nodes. Each is a flag --NAME, an
// environment variable QUORATE_NAME and a key NAME in the file of --config. The
// first of them that is given counts.
//
// Invariant: no error quotes what a file contains but the name of a key, as it
// may contain passwords.

// shared are the settings that a file or the environment can give, too.
var shared = []string{"nodes", "prefix", "guard", "owner", "username-file", "password-file",
	"tls-ca", "tls-cert", "tls-key"}

// configVariable names the file where --config does not.
const configVariable = "QUORATE_CONFIG"

// variable is the environment variable of a setting.
func variable(name string) string {
	return "QUORATE_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// access is how the nodes let this process in: what their addresses do not say.
type access struct {
	username, password string // files
	ca, cert, key      string // files
	pool               *x509.CertPool
}

func (a *access) flags(f *pflag.FlagSet) {
	f.StringVar(&a.username, "username-file", "", "file with the user name, for addresses without one")
	f.StringVar(&a.password, "password-file", "",
		"file with the password, for addresses without one; read for each connection")
	f.StringVar(&a.ca, "tls-ca", "",
		"file with the certificate authorities of the servers (PEM; default: the system's)")
	f.StringVar(&a.cert, "tls-cert", "", "file with the client certificate (PEM); read for each connection")
	f.StringVar(&a.key, "tls-key", "", "file with the private key of --tls-cert (PEM)")
}

// resolve completes what the flags have not said.
func (t *Target) resolve() error {
	if t.config == "" {
		t.config = os.Getenv(configVariable)
	}
	file, err := readConfig(t.config)
	if err != nil {
		return NewExit(ExitUsage, err)
	}
	for _, name := range shared {
		f := t.flags.Lookup(name)
		if f == nil || name == "guard" && !t.guarded { // a command that goes by the settings of the set
			continue
		}
		if f.Changed && f.Value.String() != "" {
			continue
		}
		value, from := os.Getenv(variable(name)), variable(name)
		if value == "" {
			value, from = file[name], fmt.Sprintf("%s: %s", t.config, name)
		}
		if value == "" {
			continue
		}
		if err := f.Value.Set(value); err != nil {
			// The other values may be any text.
			return NewExit(ExitUsage, fmt.Errorf("%s must be a duration such as 20s", from))
		}
	}
	if err := t.access.check(); err != nil {
		return NewExit(ExitUsage, err)
	}
	return nil
}

// lineOf finds where an error of the YAML parser says that it stands.
var lineOf = regexp.MustCompile(`: line \d+`)

// readConfig reads a file of keys and values; nodes may be a list.
func readConfig(path string) (map[string]string, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	var doc yaml.Node // a struct's errors would quote values
	if err := yaml.Unmarshal(text, &doc); err != nil {
		// The rest of the error may quote a secret value.
		return nil, fmt.Errorf("%s: not valid YAML%s", path, lineOf.FindString(err.Error()))
	}
	if doc.Kind == 0 {
		return nil, nil // it is empty
	}
	if doc.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s: each line must look like KEY: VALUE", path)
	}
	all := map[string]string{}
	for pair := range slices.Chunk(doc.Content[0].Content, 2) {
		key, value := pair[0].Value, pair[1]
		_, twice := all[key]
		switch {
		case !slices.Contains(shared, key):
			return nil, fmt.Errorf("%s, line %d: unknown key %.32q; the keys are %s", path, pair[0].Line,
				key, strings.Join(shared, ", "))
		case twice:
			return nil, fmt.Errorf("%s, line %d: the key %s appears twice", path, pair[0].Line, key)
		case value.Kind == yaml.ScalarNode:
			all[key] = value.Value
		case key == "nodes" && value.Kind == yaml.SequenceNode:
			var nodes []string
			for _, n := range value.Content {
				// One that is left out would have this client count on other
				// nodes than the others.
				if n.Kind != yaml.ScalarNode || strings.TrimSpace(n.Value) == "" {
					return nil, fmt.Errorf("%s, line %d: each node must be one address, such as host:port", path, n.Line)
				}
				nodes = append(nodes, n.Value)
			}
			all[key] = strings.Join(nodes, ",")
		default:
			return nil, fmt.Errorf("%s, line %d: the value of %s must be a single string", path, value.Line, key)
		}
	}
	return all, nil
}

// check reads each file once, so that a missing one is an error of the command
// line.
func (a *access) check() error {
	switch {
	case a.username != "" && a.password == "":
		return errors.New("--username-file: also pass --password-file")
	case (a.cert == "") != (a.key == ""):
		return errors.New("--tls-cert and --tls-key: pass both or neither")
	}
	if _, _, err := a.credentials(""); err != nil {
		return err
	}
	if a.cert != "" {
		if _, err := tls.LoadX509KeyPair(a.cert, a.key); err != nil {
			return fmt.Errorf("--tls-cert and --tls-key: %w", err)
		}
	}
	if a.ca == "" {
		return nil
	}
	text, err := os.ReadFile(a.ca)
	if err != nil {
		return fmt.Errorf("--tls-ca: %w", err)
	}
	if a.pool = x509.NewCertPool(); !a.pool.AppendCertsFromPEM(text) {
		return fmt.Errorf("--tls-ca: %s contains no PEM certificate", a.ca)
	}
	return nil
}

// credentials reads them for a connection. The user's name in an address goes
// before the file's.
func (a *access) credentials(user string) (name, password string, err error) {
	name = user
	for _, f := range []struct {
		flag, path string
		to         *string
	}{{"--username-file", a.username, &name}, {"--password-file", a.password, &password}} {
		if f.path == "" || f.flag == "--username-file" && user != "" {
			continue
		}
		text, err := os.ReadFile(f.path)
		if err != nil {
			return "", "", fmt.Errorf("%s: %w", f.flag, err)
		}
		if *f.to = strings.TrimRight(string(text), "\r\n"); *f.to == "" {
			return "", "", fmt.Errorf("%s: %s is empty", f.flag, f.path)
		}
	}
	return name, password, nil
}

// prepare puts into the options of a node what its address does not say.
func (a *access) prepare(o *redis.Options) error {
	if a.pool != nil || a.cert != "" {
		if o.TLSConfig == nil {
			return fmt.Errorf("%s is an address without TLS, but --tls-ca or --tls-cert is set: use rediss://", o.Addr)
		}
		if a.pool != nil {
			o.TLSConfig.RootCAs = a.pool
		}
		if a.cert != "" {
			o.TLSConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				pair, err := tls.LoadX509KeyPair(a.cert, a.key)
				return &pair, err
			}
		}
	}
	if a.password != "" && o.Password == "" {
		user := o.Username
		o.CredentialsProviderContext = func(context.Context) (string, string, error) { return a.credentials(user) }
	}
	return nil
}
