package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	modzip "golang.org/x/mod/zip"
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

// sums are the library's lines for a go.sum.
func sums(t tree, version string) ([]string, error) {
	tmp, err := os.CreateTemp("", "quorate-*.zip")
	if err != nil {
		return nil, err
	}
	defer func() { _, _ = tmp.Close(), os.Remove(tmp.Name()) }()
	if err := t.zip(tmp, ".", module.Version{Path: library, Version: version}); err != nil {
		return nil, err
	}
	all, err := dirhash.HashZip(tmp.Name(), dirhash.Hash1)
	if err != nil {
		return nil, err
	}
	mod, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return os.Open(filepath.Join(string(t), "go.mod"))
	})
	if err != nil {
		return nil, err
	}
	return []string{
		fmt.Sprintf("%s %s %s", library, version, all),
		fmt.Sprintf("%s %s/go.mod %s", library, version, mod),
	}, nil
}

// publish writes the modules of the tree into a folder that serves as a module
// proxy.
func publish(t tree, version, proxy string) error {
	folders, err := published(string(t))
	if err != nil {
		return err
	}
	for _, folder := range append(folders, ".") {
		path := path.Join(library, folder)
		dir := filepath.Join(proxy, filepath.FromSlash(path), "@v")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		var z bytes.Buffer
		if err := t.zip(&z, folder, module.Version{Path: path, Version: version}); err != nil {
			return err
		}
		mod, err := os.ReadFile(filepath.Join(string(t), folder, "go.mod"))
		if err != nil {
			return err
		}
		info, err := json.Marshal(map[string]any{"Version": version, "Time": time.Now().UTC()})
		if err != nil {
			return err
		}
		for name, text := range map[string][]byte{
			"list": []byte(version + "\n"), version + ".info": info, version + ".mod": mod, version + ".zip": z.Bytes(),
		} {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

func sorted(lines []string) []string {
	slices.Sort(lines)
	return slices.Compact(lines)
}
