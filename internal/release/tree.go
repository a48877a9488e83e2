package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"
)

const (
	library = "github.com/quorate/quorate"
	command = "cmd/quorate" // the folder, and the rest of the module's path
)

// tree is a checkout. Only files that git knows are part of a release.
type tree string

// file is one of them.
type file struct{ root, path string }

func (f file) Path() string                 { return f.path }
func (f file) Lstat() (os.FileInfo, error)  { return os.Lstat(filepath.Join(f.root, f.path)) }
func (f file) Open() (io.ReadCloser, error) { return os.Open(filepath.Join(f.root, f.path)) }

// zip writes the module in a folder of the tree as a proxy serves it.
func (t tree) zip(w io.Writer, folder string, mod module.Version) error {
	root := filepath.Join(string(t), folder)
	list, err := output(root, "git", "ls-files", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	var files []modzip.File
	for path := range strings.Lines(list) {
		f := file{root, strings.TrimSpace(path)}
		if _, err := f.Lstat(); err == nil { // else it has been deleted
			files = append(files, f)
		}
	}
	return modzip.Create(w, mod, files)
}

// modules are the folders of the workspace's modules for users, alongside the
// library. Those below internal are no part of a release.
func modules(dir string) (folders []string, err error) {
	name := filepath.Join(dir, "go.work")
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	work, err := modfile.ParseWork(name, text, nil)
	if err != nil {
		return nil, err
	}
	for _, use := range work.Use {
		if folder := path.Clean(use.Path); folder != "." && !strings.HasPrefix(folder, "internal/") {
			folders = append(folders, folder)
		}
	}
	return folders, nil
}

// published are those of them that get a tag. The examples are for readers of
// the repository, and are not imported.
func published(dir string) ([]string, error) {
	folders, err := modules(dir)
	return slices.DeleteFunc(folders, func(folder string) bool { return folder == "examples" }), err
}

// output runs a command and returns what it prints.
func output(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	var errs strings.Builder
	cmd.Stderr = &errs
	b, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, errs.String())
	}
	return strings.TrimSpace(string(b)), nil
}
