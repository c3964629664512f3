package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// plainInterval is the time between two progress lines if the output is not a terminal.
const plainInterval = 15 * time.Second

// progress shows the progress of a go command.
// On a terminal it updates one line in place. Elsewhere it prints a line every plainInterval.
type progress struct {
	out      *os.File
	terminal bool
	started  time.Time

	mu        sync.Mutex
	remaining map[string]bool // packages still to compile; nil before setPackages
	compiled  int             // number of packages whose compilation has started
	packages  int             // number of packages to compile in total
	current   string          // current step, package or download
}

func newProgress(out *os.File) *progress {
	info, err := out.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
	return &progress{out: out, terminal: terminal, started: time.Now()}
}

// setStep shows a step that precedes the compilation of packages.
func (p *progress) setStep(step string) {
	p.mu.Lock()
	p.current = step
	p.mu.Unlock()
	p.show()
}

// setPackages sets the packages that the go command will compile.
func (p *progress) setPackages(packages []string) {
	p.mu.Lock()
	p.remaining = make(map[string]bool, len(packages))
	for _, name := range packages {
		p.remaining[name] = true
	}
	p.compiled, p.packages, p.current = 0, len(p.remaining), ""
	p.mu.Unlock()
	p.show()
}

// parseLine parses a line of the go command's standard error.
// It reports whether the line is progress output: a package name, which
// the go command prints when its compilation starts, or a download.
func (p *progress) parseLine(text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.remaining[text]:
		delete(p.remaining, text)
		p.compiled++
		p.current = text
	case strings.HasPrefix(text, "go: downloading "):
		p.current = strings.TrimPrefix(text, "go: ")
	default:
		return false
	}
	return true
}

// String returns the progress as one line.
func (p *progress) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	elapsed := time.Since(p.started).Round(time.Second)
	if p.remaining == nil {
		return fmt.Sprintf("upstream: %s (%s)", p.current, elapsed)
	}
	current := p.current
	if p.compiled == p.packages {
		current = "linking"
	}
	return fmt.Sprintf("upstream: %d of %d packages (%s) %s", p.compiled, p.packages, elapsed, current)
}

func (p *progress) show() {
	if p.terminal {
		const columns = 100
		fmt.Fprintf(p.out, "\r\033[K%.*s", columns, p)
		return
	}
	fmt.Fprintln(p.out, p)
}

// showPeriodically shows the progress at regular intervals until the caller calls stop.
func (p *progress) showPeriodically() (stop func()) {
	interval := plainInterval
	if p.terminal {
		interval = 200 * time.Millisecond
	}
	stopped, finished := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(finished)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-stopped:
				return
			case <-ticker.C:
				p.show()
			}
		}
	}()
	return func() { close(stopped); <-finished }
}

// clear removes the progress line from a terminal.
func (p *progress) clear() {
	if p.terminal {
		fmt.Fprint(p.out, "\r\033[K")
	}
}
