// Command release makes a release of the library, of the command and of the
// modules under compat.
//
//	go run ./internal/release -version v0.1.0        # shows what it would do
//	go run ./internal/release -version v0.1.0 -do    # commits and tags
//
// All modules live in one repository and get the same version. The others
// require the library at that version, so the order is: requirements,
// checksums, commit, the library's tag, the others' tags. Everything is done
// in a clone first. From that clone it builds a module proxy, as the world will
// see the release, and installs from it into an empty module cache. It pushes
// nothing.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	version := flag.String("version", "", "the version to release, as v0.1.0")
	do := flag.Bool("do", false, "commit and tag; otherwise show what would be done")
	flag.Parse()
	if err := release(*version, *do); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release makes the release in a clone, proves that it can be installed, and
// takes it over.
func release(version string, do bool) error {
	root, err := output("", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	if err := ready(root, version); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "quorate-release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	clone := filepath.Join(tmp, "clone")
	if _, err := output("", "git", "clone", "-q", "--no-hardlinks", root, clone); err != nil {
		return err
	}
	if err := identify(root, clone, do); err != nil {
		return err
	}
	if err := prepare(clone, version, time.Now()); err != nil {
		return err
	}
	diff, err := output(clone, "git", "diff")
	if err != nil {
		return err
	}
	fmt.Println(diff)
	tags, err := tag(clone, version)
	if err != nil {
		return err
	}
	fmt.Println("\nInstalling it from a module proxy into an empty module cache:")
	if err := install(tree(clone), version, tmp, os.Stdout); err != nil {
		return fmt.Errorf("the release cannot be installed: %w", err)
	}
	if !do {
		fmt.Printf("\nThat was a rehearsal: nothing has changed here. To release: make release VERSION=%s DO=1\n",
			version)
		return nil
	}
	if _, err := output(root, "git", "pull", "-q", "--ff-only", "--tags", clone, "HEAD"); err != nil {
		return err
	}
	fmt.Printf("\nCommitted and tagged. Publish it with\n  git push origin HEAD %s\n", strings.Join(tags, " "))
	return nil
}

// identify says whose commit and tags those in the clone are. A rehearsal keeps
// neither, so it needs no name.
func identify(root, clone string, do bool) error {
	for key, value := range map[string]string{"user.name": "rehearsal", "user.email": "rehearsal@localhost"} {
		if do {
			var err error
			if value, err = output(root, "git", "config", key); err != nil {
				return fmt.Errorf("git has no %s for the commit and the tags: git config %s …", key, key)
			}
		}
		if _, err := output(clone, "git", "config", key, value); err != nil {
			return err
		}
	}
	return nil
}

// tag commits what prepare has changed and tags it: the library first, because
// the others require it. By a tag with its folder before the version Go finds a
// module.
func tag(dir, version string) (tags []string, err error) {
	folders, err := published(dir)
	if err != nil {
		return nil, err
	}
	tags = []string{version}
	for _, folder := range folders {
		tags = append(tags, folder+"/"+version)
	}
	if _, err := output(dir, "git", "commit", "-q", "-a", "-m", "release: "+version); err != nil {
		return nil, err
	}
	for _, name := range tags {
		if _, err := output(dir, "git", "tag", "-a", name, "-m", "Quorate "+name); err != nil {
			return nil, err
		}
	}
	return tags, nil
}
