package rig

import "fmt"

// Output returns what the relay has written so far, over all its starts: standard
// output, then standard error.
func (r *Rig) Output() []byte {
	stdout, _ := r.stdout.bytes()
	stderr, _ := r.stderr.bytes()
	return append(stdout, stderr...)
}

// Stdout returns what the relay has written to standard output.
func (r *Rig) Stdout() []byte { text, _ := r.stdout.bytes(); return text }

// Stderr returns what the relay has written to standard error, where its log goes.
func (r *Rig) Stderr() []byte { text, _ := r.stderr.bytes(); return text }

// Log returns the lines of the log with this message, all lines for "".
func (r *Rig) Log(message string) []Line {
	lines := readLines(r.Stderr())
	if message == "" {
		return lines
	}
	var found []Line
	for _, line := range lines {
		if line.Message == message {
			found = append(found, line)
		}
	}
	return found
}

// WaitLogged waits until at least n lines with this message stand in the log, and
// returns them.
func (r *Rig) WaitLogged(message string, n int) []Line {
	r.t.Helper()
	var lines []Line
	r.Eventually("log line "+message, func() error {
		if lines = r.Log(message); len(lines) < n {
			return fmt.Errorf("%d of %d are there", len(lines), n)
		}
		return nil
	})
	return lines
}
