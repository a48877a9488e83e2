package main

import (
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// user is a program that uses each of the five primitives.
//
//go:embed user.go.txt
var user []byte

// install does what a user does: it gets the library into a fresh module,
// builds and runs a program with it, and installs the command, all from a
// module proxy that serves the tree as a release, into an empty module cache.
func install(t tree, version, tmp string, w io.Writer) error {
	proxy, cache, bin, app := filepath.Join(tmp, "proxy"), filepath.Join(tmp, "cache"), filepath.Join(tmp, "bin"), filepath.Join(tmp, "app")
	if err := publish(t, version, proxy); err != nil {
		return err
	}
	if err := os.MkdirAll(app, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(app, "main.go"), user, 0o644); err != nil {
		return err
	}
	others, err := output("", "go", "env", "GOPROXY")
	if err != nil {
		return err
	}
	here, err := output("", "go", "env", "GOMODCACHE")
	if err != nil {
		return err
	}
	env := append(os.Environ(), "GOWORK=off", "GOFLAGS=-modcacherw -trimpath", "GOBIN="+bin, "GOMODCACHE="+cache, "GOSUMDB=off",
		// Dependencies that this machine has need not come from afar. No module
		// is fetched from its repository: the library's must not be looked for
		// there.
		"GOPROXY=file://"+filepath.ToSlash(proxy)+",file://"+filepath.ToSlash(here)+"/cache/download,"+strings.TrimSuffix(others, ",direct"))
	for _, step := range [][]string{
		{"go", "mod", "init", "example.com/app"},
		{"go", "get", library + "@" + version},
		{"go", "mod", "tidy"},
		{"go", "build", "-o", filepath.Join(bin, "app"), "."},
		{"go", "install", library + "/" + command + "@" + version},
		{filepath.Join(bin, "app")},
		{filepath.Join(bin, "quorate"), "version"},
		{filepath.Join(bin, "quorate"), "--help"},
	} {
		cmd := exec.Command(step[0], step[1:]...)
		cmd.Dir, cmd.Env = app, env
		out, err := cmd.CombinedOutput()
		fmt.Fprintf(w, "$ %s\n%s", strings.Join(step, " "), out)
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(step, " "), err, out)
		}
	}
	return nil
}
