package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// plainInterval is the time between two lines where nothing can be rewritten.
const plainInterval = 15 * time.Second

// progress shows how far the go command is: one line rewritten on a terminal,
// a line every plainInterval elsewhere.
type progress struct {
	out      *os.File
	terminal bool
	started  time.Time

	mu       sync.Mutex
	expected map[string]bool // packages still to compile
	compiled int
	packages int // to compile in all
	current  string
}

func newProgress(out *os.File) *progress {
	info, err := out.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
	return &progress{out: out, terminal: terminal, started: time.Now()}
}

// stage says what goes on before the first package is compiled.
func (p *progress) stage(what string) {
	p.mu.Lock()
	p.current = what
	p.mu.Unlock()
	p.show()
}

// total sets the packages that are to be compiled.
func (p *progress) total(packages []string) {
	p.mu.Lock()
	p.expected = make(map[string]bool, len(packages))
	for _, name := range packages {
		p.expected[name] = true
	}
	p.compiled, p.packages, p.current = 0, len(p.expected), ""
	p.mu.Unlock()
	p.show()
}

// line takes a line of the go command's standard error and reports whether it
// was progress: the name of a package as its compilation starts, or a download.
func (p *progress) line(text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.expected[text]:
		delete(p.expected, text)
		p.compiled++
		p.current = text
	case strings.HasPrefix(text, "go: downloading "):
		p.current = strings.TrimPrefix(text, "go: ")
	default:
		return false
	}
	return true
}

// String is the progress as one line.
func (p *progress) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	elapsed := time.Since(p.started).Round(time.Second)
	if p.expected == nil {
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

// tick shows the progress from time to time until stop is called.
func (p *progress) tick() (stop func()) {
	interval := plainInterval
	if p.terminal {
		interval = 200 * time.Millisecond
	}
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-quit:
				return
			case <-ticker.C:
				p.show()
			}
		}
	}()
	return func() { close(quit); <-ended }
}

// done ends the line that was being rewritten.
func (p *progress) done() {
	if p.terminal {
		fmt.Fprint(p.out, "\r\033[K")
	}
}
