package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Identity identifies one process among all processes of all machines, past and future. A
// program can store an Identity in a file, and check later whether the process still runs. A PID
// is not enough: after the process has exited, the kernel may give its PID to another process.
type Identity struct {
	// Host is the host name of the machine.
	Host string
	// Boot is the boot ID of the kernel, which changes with every boot.
	Boot string
	// Namespace is the PID namespace of the process, such as "pid:[4026531836]".
	Namespace string
	// PID is the process ID in the PID namespace Namespace.
	PID int
	// StartTicks is the start time of the process, in clock ticks since the machine booted.
	StartTicks uint64
}

// Self returns the identity of this process.
func Self() (Identity, error) {
	id, err := localIdentity()
	if err != nil {
		return Identity{}, err
	}
	stat, err := readStat(os.Getpid())
	if err != nil {
		return Identity{}, fmt.Errorf("reading the start time of this process: %w", err)
	}
	id.PID, id.StartTicks = os.Getpid(), stat.startTicks
	return id, nil
}

// localIdentity returns an Identity without PID and StartTicks. It contains only the host name,
// the boot ID and the PID namespace of this process.
func localIdentity() (Identity, error) {
	host, err := os.Hostname()
	if err != nil {
		return Identity{}, fmt.Errorf("reading the host name of this machine: %w", err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Identity{}, fmt.Errorf("reading the boot ID of the kernel: %w", err)
	}
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return Identity{}, fmt.Errorf("reading the PID namespace of this process: %w", err)
	}
	return Identity{Host: host, Boot: strings.TrimSpace(string(boot)), Namespace: namespace}, nil
}

// String returns the identity as "host/boot/namespace/pid/ticks", which [ParseIdentity] parses.
func (id Identity) String() string {
	return fmt.Sprintf("%s/%s/%s/%d/%d", id.Host, id.Boot, id.Namespace, id.PID, id.StartTicks)
}

// ParseIdentity parses a text in the format of [Identity.String].
func ParseIdentity(s string) (Identity, error) {
	parts := strings.Split(s, "/")
	if len(parts) != 5 {
		return Identity{}, fmt.Errorf("process identity %q: expected the form HOST/BOOT-ID/PID-NAMESPACE/PID/START-TICKS", s)
	}
	id := Identity{Host: parts[0], Boot: parts[1], Namespace: parts[2]}
	if _, err := fmt.Sscanf(parts[3]+" "+parts[4], "%d %d", &id.PID, &id.StartTicks); err != nil || id.PID < 1 {
		return Identity{}, fmt.Errorf("process identity %q: expected a PID and a start time in clock ticks, found %q and %q", s, parts[3], parts[4])
	}
	return id, nil
}

// Existence is the result of [Identity.Existence]: whether a process is running, or that this
// machine cannot tell.
type Existence string

const (
	// Lives means that the process is running.
	Lives Existence = "lives"
	// Gone means that the process has exited.
	Gone Existence = "gone"
	// Elsewhere means that the process belongs to another machine or PID namespace. Whether it
	// is running is unknown.
	Elsewhere Existence = "elsewhere"
)

// Existence returns whether the process with this identity is still running. The result is Lives if
// the process is running, and Gone if it has exited. The result is Elsewhere (unknown) for a
// process of another machine or PID namespace.
func (id Identity) Existence() (Existence, error) {
	local, err := localIdentity()
	if err != nil {
		return "", err
	}
	switch {
	case id.Host != local.Host:
		return Elsewhere, nil
	case id.Boot != local.Boot:
		return Gone, nil // the machine was rebooted after the start of the process
	case id.Namespace != local.Namespace:
		return Elsewhere, nil
	}
	stat, err := readStat(id.PID)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Gone, nil
	case err != nil:
		return "", fmt.Errorf("reading the state of process %d: %w", id.PID, err)
	case stat.dead() || stat.startTicks != id.StartTicks:
		return Gone, nil
	}
	return Lives, nil
}
