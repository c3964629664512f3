package setup

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// plainInterval is the time between two lines of build progress if the output is not a terminal.
const plainInterval = 15 * time.Second

// progress shows users how far a go command is. On a terminal, it updates one line in place.
// Otherwise, it prints a new line every plainInterval.
type progress struct {
	out      *os.File  // where the progress is printed; nil prints nothing
	terminal bool      // true if out is a terminal
	started  time.Time // the time at which the progress display was created

	mu        sync.Mutex
	remaining map[string]bool // the packages whose compilation has not started; nil before setPackages
	compiled  int             // the number of packages whose compilation has started
	packages  int             // the total number of packages to compile
	current   string          // the current step, package or download
}

// newProgress returns a display of the progress of a build. The display prints to out.
func newProgress(out *os.File) *progress {
	info, err := out.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
	return &progress{out: out, terminal: terminal, started: time.Now()}
}

// setStep sets and shows the name of a step before the compilation, such as "listing the packages
// to compile".
func (p *progress) setStep(step string) {
	p.mu.Lock()
	p.current = step
	p.mu.Unlock()
	p.show()
}

// setPackages stores which packages the go command will compile, so that the progress display can
// count them. It then shows the progress.
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

// parseLine updates the progress from a line of the go command's standard error. It reports whether
// the line is progress output. Such a line names a package whose compilation starts, or a module
// that is downloaded.
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

// String formats the progress as one line, such as "setup: 12 of 900 packages (35s)
// k8s.io/api/core/v1".
func (p *progress) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	elapsed := time.Since(p.started).Round(time.Second)
	if p.remaining == nil {
		return fmt.Sprintf("setup: %s (%s)", p.current, elapsed)
	}
	current := p.current
	if p.compiled == p.packages {
		current = "linking"
	}
	return fmt.Sprintf("setup: %d of %d packages (%s) %s", p.compiled, p.packages, elapsed, current)
}

// show prints the current progress of the build once.
func (p *progress) show() {
	if p.out == nil {
		return
	}
	if p.terminal {
		const columns = 100
		fmt.Fprintf(p.out, "\r\033[K%.*s", columns, p)
		return
	}
	fmt.Fprintln(p.out, p)
}

// showPeriodically calls show in the background at a regular interval, until the caller calls the
// returned function stop. Users then see that a long step of the build still runs.
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

// clear erases the progress line if the output is a terminal, so that other output can follow.
func (p *progress) clear() {
	if p.terminal {
		fmt.Fprint(p.out, "\r\033[K")
	}
}
