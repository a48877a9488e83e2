package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
)

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
			"list": []byte(version + "\n"), version + ".info": info,
			version + ".mod": mod, version + ".zip": z.Bytes(),
		} {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}
