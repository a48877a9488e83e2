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
// builds and runs a program with it, installs the command, gets each of the
// modules under compat, and all that the examples are made of, from a module
// proxy that serves the tree as a release, into an empty module cache.
func install(t tree, version, tmp string, w io.Writer) error {
	proxy, cache, bin, app := filepath.Join(tmp, "proxy"), filepath.Join(tmp, "cache"),
		filepath.Join(tmp, "bin"), filepath.Join(tmp, "app")
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
	env := append(os.Environ(), "GOWORK=off", "GOFLAGS=-modcacherw -trimpath", "GOBIN="+bin,
		"GOMODCACHE="+cache, "GOSUMDB=off",
		// Dependencies that this machine has need not come from afar. No module
		// is fetched from its repository: the library's must not be looked for
		// there.
		"GOPROXY=file://"+filepath.ToSlash(proxy)+",file://"+filepath.ToSlash(here)+"/cache/download,"+
			strings.TrimSuffix(others, ",direct"))
	adapters, err := addAdapters(string(t), app)
	if err != nil {
		return err
	}
	steps := [][]string{
		{"go", "mod", "init", "example.com/app"},
		{"go", "get", library + "@" + version},
		{"go", "mod", "tidy"},
		{"go", "build", "-o", filepath.Join(bin, "app"), "."},
		{"go", "install", library + "/" + command + "@" + version},
		{filepath.Join(bin, "app")},
		{filepath.Join(bin, "quorate"), "version"},
		{filepath.Join(bin, "quorate"), "--help"},
	}
	for _, a := range adapters {
		steps = append(steps, []string{"go", "get", a + "@" + version})
	}
	// Both find all that is to be compiled, and check it by its checksums. The
	// stage lint compiles it.
	steps = append(steps,
		[]string{"go", "list", "-deps", "-tags", "adapters", "."},
		[]string{"go", "list", "-C", filepath.Join(string(t), "examples"), "-deps", "./..."},
	)
	for _, step := range steps {
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

// addAdapters has the program use the modules under compat where it is built
// with the tag adapters, and returns their paths.
func addAdapters(dir, app string) (adapters []string, err error) {
	folders, err := published(dir)
	if err != nil {
		return nil, err
	}
	text := "//go:build adapters\n\npackage main\n\nimport (\n"
	for _, folder := range folders {
		if strings.HasPrefix(folder, "compat/") {
			adapters = append(adapters, library+"/"+folder)
			text += fmt.Sprintf("\t_ %q\n", library+"/"+folder)
		}
	}
	return adapters, os.WriteFile(filepath.Join(app, "adapters.go"), []byte(text+")\n"), 0o644)
}
