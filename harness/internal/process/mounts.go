package process

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Mount shows a process a file or directory of this machine at another path. Other processes do not
// see it there. If the target or its parent directories do not exist, the process sees them
// nevertheless.
type Mount struct {
	Source string `json:"source"` // absolute path of the file or directory
	Target string `json:"target"` // absolute path at which the process sees it
}

// mountsVariable names the environment variable that lets this program mount files and then
// execute another program. The value is a [mountedProgram] in JSON.
const mountsVariable = "GAUNTLET_MOUNTS"

// mountedProgram says which program to execute in a mount namespace of its own, and with which
// mounts.
type mountedProgram struct {
	Path   string  `json:"path"` // path of the executable; empty to exit after the mounts
	Mounts []Mount `json:"mounts"`
	// Root is the path of an empty directory, which becomes the root directory of the program.
	Root string `json:"root"`
}

// init runs another program, instead of the main function, if mountsVariable is set.
func init() {
	value := os.Getenv(mountsVariable)
	if value == "" {
		return
	}
	var p mountedProgram
	err := json.Unmarshal([]byte(value), &p)
	if err == nil {
		err = p.execute()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gauntlet: mounting the files of the program:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// execute mounts the files and replaces this process by the program.
func (p mountedProgram) execute() error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	if err := enterRoot(p.Root, p.Mounts); err != nil {
		return err
	}
	if err := os.Chdir(dir); err != nil {
		return err
	}
	if p.Path == "" {
		return nil
	}
	runtime.LockOSThread() // capabilities belong to a thread
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	env := slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, mountsVariable+"=") })
	if err := unix.Exec(p.Path, append([]string{p.Path}, os.Args[1:]...), env); err != nil {
		return &os.PathError{Op: "exec", Path: p.Path, Err: err}
	}
	return nil
}

// mountCommand returns the command that runs the program with its mounts. It runs this executable,
// which then executes the program. The process ID stays the same.
func (s Spec) mountCommand(namespace namespace) (*exec.Cmd, error) {
	value, err := json.Marshal(mountedProgram{Path: s.Path, Mounts: s.Mounts, Root: s.Root})
	if err != nil {
		return nil, err
	}
	cmd := s.commandOf("/proc/self/exe")
	cmd.Env = append(cmd.Env, mountsVariable+"="+string(value))
	namespace.set(cmd.SysProcAttr)
	return cmd, nil
}

// namespace is a way to create a mount namespace.
type namespace struct {
	user bool // also creates a user namespace, because the user is not root
}

// set changes attributes so that the process gets a mount namespace of its own.
func (n namespace) set(attributes *syscall.SysProcAttr) {
	attributes.Cloneflags |= unix.CLONE_NEWNS
	if n.user {
		attributes.Cloneflags |= unix.CLONE_NEWUSER
		attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
		// Without ambient capabilities, a process of a user other than root loses all capabilities
		// when it executes a program. See capabilities(7).
		attributes.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT}
	}
}

// MountsSupported returns an error if this machine does not permit [Spec.Mounts]. Some container
// engines and distributions do not permit mount or user namespaces.
func MountsSupported() error {
	_, err := supportedNamespace()
	return err
}

// supportedNamespace returns a way to create a mount namespace that works on this machine. The first
// call tries both ways; later calls return the same result.
var supportedNamespace = sync.OnceValues(func() (namespace, error) {
	var errs []error
	for _, n := range []namespace{{user: false}, {user: true}} {
		err := n.try()
		if err == nil {
			return n, nil
		}
		errs = append(errs, err)
	}
	return namespace{}, fmt.Errorf("creating a mount namespace: %w; with a user namespace: %w", errs[0], errs[1])
})

// try returns an error if a process cannot mount files in this namespace.
func (n namespace) try() error {
	dir, err := os.MkdirTemp("", "gauntlet-mounts-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	root := filepath.Join(dir, "root")
	if err := os.Mkdir(root, 0o700); err != nil {
		return err
	}
	cmd, err := Spec{Root: root, Mounts: []Mount{{Source: dir, Target: filepath.Join(dir, "none", "such")}}}.mountCommand(n)
	if err != nil {
		return err
	}
	printed := new(strings.Builder)
	cmd.Stderr = printed
	if err := forkFromOneThread(cmd); err != nil {
		return err
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(printed.String()))
	}
	return nil
}
