package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Identity tells one process from all others on the same machine, of this boot
// and of others, so that it can be written down and asked about later: its ID
// alone is given to another process some time after it ended.
type Identity struct {
	// Host is the machine's name; Boot is different after each of its boots.
	Host, Boot string
	// Namespace is the PID namespace, outside which the PID means another process.
	Namespace string
	PID       int
	// StartTicks is when the process started, in clock ticks since the boot.
	StartTicks uint64
}

// Self is the identity of this process.
func Self() (Identity, error) {
	here, err := whereabouts()
	if err != nil {
		return Identity{}, err
	}
	stat, err := readStat(os.Getpid())
	if err != nil {
		return Identity{}, fmt.Errorf("finding out when gauntlet started: %w", err)
	}
	here.PID, here.StartTicks = os.Getpid(), stat.startTicks
	return here, nil
}

// whereabouts is what the identities of all processes here have in common.
func whereabouts() (Identity, error) {
	host, err := os.Hostname()
	if err != nil {
		return Identity{}, fmt.Errorf("finding out the name of the machine: %w", err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Identity{}, fmt.Errorf("finding out the boot of the machine: %w", err)
	}
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return Identity{}, fmt.Errorf("finding out the PID namespace: %w", err)
	}
	return Identity{Host: host, Boot: strings.TrimSpace(string(boot)), Namespace: namespace}, nil
}

// String is the identity as [ParseIdentity] reads it.
func (id Identity) String() string {
	return fmt.Sprintf("%s/%s/%s/%d/%d", id.Host, id.Boot, id.Namespace, id.PID, id.StartTicks)
}

// ParseIdentity reads what [Identity.String] wrote.
func ParseIdentity(s string) (Identity, error) {
	parts := strings.Split(s, "/")
	if len(parts) != 5 {
		return Identity{}, fmt.Errorf("process %q: expected HOST/BOOT/NAMESPACE/PID/TICKS", s)
	}
	id := Identity{Host: parts[0], Boot: parts[1], Namespace: parts[2]}
	if _, err := fmt.Sscanf(parts[3]+" "+parts[4], "%d %d", &id.PID, &id.StartTicks); err != nil || id.PID < 1 {
		return Identity{}, fmt.Errorf("process %q: expected a PID and its start in ticks, found %q and %q", s, parts[3], parts[4])
	}
	return id, nil
}

// Existence is whether a process still lives, as far as can be told from here.
type Existence string

const (
	// Lives says that the process runs.
	Lives Existence = "lives"
	// Gone says that the process has ended.
	Gone Existence = "gone"
	// Elsewhere says that it is on another machine or in another container, and
	// that nothing here can tell whether it lives.
	Elsewhere Existence = "elsewhere"
)

// Existence asks whether the process still lives.
func (id Identity) Existence() (Existence, error) {
	here, err := whereabouts()
	if err != nil {
		return "", err
	}
	switch {
	case id.Host != here.Host:
		return Elsewhere, nil
	case id.Boot != here.Boot:
		return Gone, nil // this machine was started anew since
	case id.Namespace != here.Namespace:
		return Elsewhere, nil
	}
	stat, err := readStat(id.PID)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Gone, nil
	case err != nil:
		return "", fmt.Errorf("asking for process %d: %w", id.PID, err)
	case stat.dead() || stat.startTicks != id.StartTicks:
		return Gone, nil
	}
	return Lives, nil
}
