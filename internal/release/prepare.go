package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// ready refuses what would make a bad release, before anything is done.
func ready(root, version string) error {
	if !semver.IsValid(version) || semver.Canonical(version) != version {
		return fmt.Errorf("-version %q: give a whole semantic version, as v0.1.0", version)
	}
	if major := semver.Major(version); major != "v0" && major != "v1" {
		return fmt.Errorf("-version %q: a major version above 1 needs another module path", version)
	}
	if status, err := output(root, "git", "status", "--porcelain"); err != nil {
		return err
	} else if status != "" {
		return fmt.Errorf("there are changes that are not committed:\n%s", status)
	}
	tags, err := output(root, "git", "tag", "--list", "v*")
	if err != nil {
		return err
	}
	for _, t := range strings.Fields(tags) {
		if semver.Compare(t, version) >= 0 {
			return fmt.Errorf("%s is there already: the next version must be higher", t)
		}
	}
	return nil
}

// prepare changes a checkout into what is to be released: the changelog's
// section gets its version and date, and the other modules require the library
// at that version.
func prepare(dir, version string, now time.Time) error {
	log := filepath.Join(dir, "CHANGELOG.md")
	text, err := os.ReadFile(log)
	if err != nil {
		return err
	}
	dated, err := dateChangelog(string(text), version, now)
	if err != nil {
		return err
	}
	if err := os.WriteFile(log, []byte(dated), 0o644); err != nil {
		return err
	}
	return requireVersion(dir, version)
}

var (
	unreleased = regexp.MustCompile(`(?m)^## \[Unreleased\]\n`)
	section    = regexp.MustCompile(`(?m)^## \[`)
)

// dateChangelog gives what is under Unreleased a version and a date.
func dateChangelog(text, version string, now time.Time) (string, error) {
	at := unreleased.FindStringIndex(text)
	if at == nil {
		return "", errors.New(`CHANGELOG.md has no "## [Unreleased]"`)
	}
	rest := text[at[1]:]
	body := rest
	if next := section.FindStringIndex(rest); next != nil {
		body = rest[:next[0]]
	}
	if strings.TrimSpace(body) == "" {
		return "", errors.New("CHANGELOG.md says nothing under Unreleased: there is nothing to release")
	}
	heading := fmt.Sprintf("\n## [%s] - %s\n", strings.TrimPrefix(version, "v"), now.Format("2006-01-02"))
	return text[:at[1]] + heading + rest, nil
}

// requireVersion makes all modules for users require the library at the
// version, with its checksums.
func requireVersion(dir, version string) error {
	lines, err := sums(tree(dir), version)
	if err != nil {
		return err
	}
	folders, err := modules(dir)
	if err != nil {
		return err
	}
	for _, folder := range folders {
		if err := requireIn(filepath.Join(dir, folder), version); err != nil {
			return err
		}
		if err := addSums(filepath.Join(dir, folder, "go.sum"), lines); err != nil {
			return err
		}
	}
	return nil
}

// requireIn makes one module require the library at the version.
func requireIn(dir, version string) error {
	name := filepath.Join(dir, "go.mod")
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	mod, err := modfile.Parse(name, text, nil)
	if err != nil {
		return err
	}
	for _, r := range mod.Replace {
		if r.Old.Path == library || strings.HasSuffix(dir, command) {
			return fmt.Errorf("%s replaces %s: only this machine has that, and go install refuses such a module",
				name, r.Old.Path)
		}
	}
	if err := mod.AddRequire(library, version); err != nil {
		return err
	}
	mod.Cleanup()
	if text, err = mod.Format(); err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o644)
}

// addSums replaces the library's lines in a go.sum.
func addSums(name string, lines []string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	kept := slices.Clone(lines)
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, library+" ") {
			kept = append(kept, line)
		}
	}
	return os.WriteFile(name, []byte(strings.Join(sorted(kept), "\n")+"\n"), 0o644)
}

func sorted(lines []string) []string {
	slices.Sort(lines)
	return slices.Compact(lines)
}
