// Package executable checks whether the kernel can run a file, without running the file. If the
// kernel cannot run the file, the error says why.
package executable

import (
	"bufio"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
)

// machines maps each GOARCH to the ELF machine types that a kernel of this architecture can run.
var machines = map[string][]elf.Machine{
	"386":     {elf.EM_386},
	"amd64":   {elf.EM_X86_64, elf.EM_386},
	"arm":     {elf.EM_ARM},
	"arm64":   {elf.EM_AARCH64, elf.EM_ARM},
	"ppc64le": {elf.EM_PPC64},
	"riscv64": {elf.EM_RISCV},
	"s390x":   {elf.EM_S390},
}

// Check returns an error if this machine cannot run the file at path. The error does not contain
// the path.
//
// Check rejects a file that is not regular, is empty, or has no executable bit. It also rejects a
// file for another architecture, and a file whose interpreter is missing. A file that Check accepts
// may still fail to start, for example because a shared library is missing.
func Check(path string) error {
	if err := CheckFor(path, runtime.GOARCH); err != nil {
		return err
	}
	const execute = 1 // X_OK
	if err := syscall.Access(path, execute); err != nil {
		return fmt.Errorf("found a file that this user may not execute: %w; expected an executable file", err)
	}
	return nil
}

// CheckFor is like Check for a machine of another architecture, such as "arm64". The argument has
// the values of GOARCH. Dynamic linkers and emulators of this machine do not count then.
func CheckFor(path, architecture string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return fmt.Errorf("%w; expected an executable file", inputfile.Reason(err))
	case info.Mode().IsRegular() && info.Mode().Perm()&0o111 == 0:
		return fmt.Errorf("found a file of mode %s; expected an executable file: make it one with chmod +x", info.Mode())
	case !info.Mode().IsRegular():
		return fmt.Errorf("found %s; expected an executable file", inputfile.Describe(info.Mode()))
	case info.Size() == 0:
		return errors.New("found an empty file; expected an executable file")
	}
	file, err := os.Open(path)
	if errors.Is(err, os.ErrPermission) {
		return nil // the kernel runs a file that this user may run but not read
	}
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) { // the file is not the reason
		return inputfile.Reason(err)
	}
	if err != nil {
		return fmt.Errorf("%w; expected an executable file", inputfile.Reason(err))
	}
	defer file.Close()
	formats := "/proc/sys/fs/binfmt_misc"
	if architecture != runtime.GOARCH {
		formats = ""
	}
	return check(file, architecture, formats)
}

// check returns an error if the kernel of a machine cannot run a file with this content.
//
// The kernel may run additional file formats, for example through an emulator. The argument formats
// is the directory that lists these formats: /proc/sys/fs/binfmt_misc, except in tests. It is empty for
// another machine than this one.
func check(file io.ReaderAt, architecture, formats string) error {
	start := make([]byte, len(elf.ELFMAG))
	n, err := file.ReadAt(start, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading the executable file: %w", err)
	}
	switch {
	case bytes.HasPrefix(start[:n], []byte("#!")):
		return checkScript(file)
	case hasMoreFormats(formats):
		return nil
	case string(start[:n]) == elf.ELFMAG:
		return checkELF(file, architecture)
	}
	for _, known := range otherFormats {
		if strings.HasPrefix(string(start[:n]), known.start) {
			return fmt.Errorf("found %s; expected an executable file for linux/%s", known.name, architecture)
		}
	}
	return errors.New("found neither an ELF file nor a script with #! in its first line; expected an executable file")
}

// otherFormats has the first bytes of files that users take for executable files.
var otherFormats = []struct{ start, name string }{
	{"\xcf\xfa\xed\xfe", "an executable for macOS"}, {"\xce\xfa\xed\xfe", "an executable for macOS"}, {"\xca\xfe\xba\xbe", "an executable for macOS, or a Java class"},
	{"MZ", "an executable for Windows"}, {"\x1f\x8b", "a gzip archive"}, {"PK\x03\x04", "a zip archive"}, {"!<ar", "an archive of object files"}, {"\x00asm", "a WebAssembly module"},
	{"pack", "Go source"},
}

// checkScript returns an error if the interpreter that a script names after #! does not exist.
func checkScript(file io.ReaderAt) error {
	const lineBytesMax = 256 // the kernel reads no more
	line, err := bufio.NewReader(io.NewSectionReader(file, 2, lineBytesMax)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading the executable file: %w", err)
	}
	if strings.HasSuffix(line, "\r\n") {
		return fmt.Errorf("found a script whose first line %q ends with a carriage return, which the kernel takes for a part of the interpreter's name; expected line breaks as on Linux", "#!"+strings.TrimSuffix(line, "\n"))
	}
	words := strings.Fields(line)
	if len(words) == 0 {
		return errors.New("found a script whose first line names no interpreter; expected an executable file")
	}
	interpreter, err := os.Stat(words[0])
	switch {
	case err != nil:
		return fmt.Errorf("found a script whose interpreter %s is missing: %w; expected an executable file", words[0], inputfile.Reason(err))
	case !interpreter.Mode().IsRegular() || interpreter.Mode().Perm()&0o111 == 0:
		return fmt.Errorf("found a script whose interpreter %s is %s; expected an executable file", words[0], inputfile.Describe(interpreter.Mode()))
	case filepath.Base(words[0]) == "env" && len(words) == 2 && words[1][0] != '-' && !strings.Contains(words[1], "="):
		if _, err := exec.LookPath(words[1]); err != nil {
			return fmt.Errorf("found a script whose interpreter %s is in no directory of PATH; expected an installed program", words[1])
		}
	}
	if script, ok := file.(*os.File); ok {
		if info, err := script.Stat(); err == nil && os.SameFile(info, interpreter) {
			return fmt.Errorf("found a script that names itself, %s, as its interpreter; expected #! and a path such as /bin/sh", words[0])
		}
	}
	return nil
}

// checkELF returns an error if an ELF file is for another architecture, or if its dynamic linker
// does not exist.
func checkELF(source io.ReaderAt, architecture string) error {
	file, err := elf.NewFile(source)
	if err != nil {
		return errors.New("found an ELF file that is damaged or cut off; expected an executable file")
	}
	known, ok := machines[architecture]
	switch {
	case ok && !slices.Contains(known, file.Machine):
		return fmt.Errorf("found an executable for %s; expected one for %s", MachineName(file.Machine), architecture)
	case file.Type != elf.ET_EXEC && file.Type != elf.ET_DYN:
		return fmt.Errorf("found an ELF file of type %s; expected an executable file", file.Type)
	}
	linker, dynamic := DynamicLinker(file)
	if !dynamic || linker == "" || architecture != runtime.GOARCH {
		return nil
	}
	if _, err := os.Stat(linker); err != nil {
		return fmt.Errorf("found an executable whose dynamic linker %s is missing: %w; install it, or build with CGO_ENABLED=0", linker, inputfile.Reason(err))
	}
	return nil
}

// MachineName returns the name of an architecture as Go and container images have it, such as "arm64" for
// EM_AARCH64. For other architectures, it returns the name in the ELF format in lower case.
func MachineName(machine elf.Machine) string {
	for architecture, known := range machines {
		if known[0] == machine {
			return architecture
		}
	}
	return strings.ToLower(strings.TrimPrefix(machine.String(), "EM_"))
}

// DynamicLinker returns the path of the dynamic linker (PT_INTERP) that an executable needs. The
// path is "" if the ELF segment with the path is not readable. The result dynamic is false for a
// static executable.
func DynamicLinker(file *elf.File) (path string, dynamic bool) {
	for _, segment := range file.Progs {
		if segment.Type != elf.PT_INTERP {
			continue
		}
		const pathMax = 4096 // PATH_MAX of Linux
		content := make([]byte, min(segment.Filesz, pathMax))
		if _, err := segment.ReadAt(content, 0); err != nil {
			return "", true
		}
		return strings.TrimRight(string(content), "\x00"), true
	}
	return "", false
}

// hasMoreFormats reports whether the kernel runs other file formats than ELF and scripts, for
// example through an emulator. The argument dir is the directory that lists them:
// /proc/sys/fs/binfmt_misc, except in tests.
func hasMoreFormats(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() != "register" && e.Name() != "status" })
}
