package rig

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// ledger knows what a rig has put into its folder, so that what else appears or
// changes there is known to be the relay's doing (contract §18, R55).
type ledger struct {
	root string

	mu   sync.Mutex
	held map[string]entry // by path below root
}

// entry is a file or folder as the rig left it.
type entry struct {
	mode     fs.FileMode
	sum      [sha256.Size]byte // of a file's content
	modified time.Time         // of a file
}

func newLedger(root string, folders ...string) (*ledger, error) {
	l := &ledger{root: root, held: map[string]entry{".": {mode: fs.ModeDir}}}
	for _, name := range folders {
		if err := os.Mkdir(filepath.Join(root, name), 0o700); err != nil {
			return nil, fmt.Errorf("rig: %w", err)
		}
		l.held[name] = entry{mode: fs.ModeDir}
	}
	return l, nil
}

// write puts a file in place at once, so that nobody reads half of it, and notes
// it. Name is a path below the root.
func (l *ledger) write(name string, content []byte, mode fs.FileMode) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !filepath.IsLocal(name) {
		return "", fmt.Errorf("rig: write %s: not a path inside the folder", name)
	}
	name = filepath.Clean(name)
	path := filepath.Join(l.root, name)
	draft := path + ".draft"
	if err := os.WriteFile(draft, content, mode); err != nil {
		return "", fmt.Errorf("rig: %w", err)
	}
	// The umask has no say in what a test wants to see refused.
	if err := errors.Join(os.Chmod(draft, mode), os.Rename(draft, path)); err != nil {
		return "", fmt.Errorf("rig: %w", err)
	}
	about, err := os.Lstat(path)
	if err != nil {
		return "", fmt.Errorf("rig: %w", err)
	}
	l.held[name] = entry{about.Mode(), sha256.Sum256(content), about.ModTime()}
	return path, nil
}

// remove removes a file that was written.
func (l *ledger) remove(name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, filepath.Clean(name))
	return os.Remove(filepath.Join(l.root, name))
}

// change is a file or folder that is not as the rig left it. Content is what a
// file holds now.
type change struct {
	what    string // created, changed or removed, and the path
	content []byte
}

// changes compares the folder with what is known.
func (l *ledger) changes() ([]change, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []change
	seen := map[string]bool{}
	err := filepath.WalkDir(l.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(l.root, path)
		if err != nil {
			return err
		}
		seen[name] = true
		now, content, err := look(path)
		if err != nil {
			return err
		}
		switch held, known := l.held[name]; {
		case !known:
			found = append(found, change{"created " + name, content})
		case held.mode.IsDir() && now.mode.IsDir():
		case now.mode != held.mode || now.sum != held.sum || !now.modified.Equal(held.modified):
			found = append(found, change{"changed " + name, content})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("rig: look for changed files: %w", err)
	}
	for name := range l.held {
		if !seen[name] {
			found = append(found, change{"removed " + name, nil})
		}
	}
	slices.SortFunc(found, func(a, b change) int { return bytes.Compare([]byte(a.what), []byte(b.what)) })
	return found, nil
}

// look returns what stands at a path. Of what is no regular file it reads nothing:
// a pipe would not end.
func look(path string) (entry, []byte, error) {
	about, err := os.Lstat(path)
	if err != nil || !about.Mode().IsRegular() {
		return entry{mode: modeOf(about)}, nil, err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return entry{}, nil, err
	}
	return entry{about.Mode(), sha256.Sum256(content), about.ModTime()}, content, nil
}

func modeOf(about fs.FileInfo) fs.FileMode {
	if about == nil {
		return 0
	}
	return about.Mode()
}
