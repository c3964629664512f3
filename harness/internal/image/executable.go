package image

import (
	"bytes"
	"cmp"
	"debug/elf"
	"errors"
	"fmt"

	"github.com/kube-gauntlet/gauntlet/harness/internal/executable"
)

// architectures has the supported machines of ELF files, with the name that container images have
// for each architecture.
var architectures = map[elf.Machine]string{
	elf.EM_X86_64:  "amd64",
	elf.EM_AARCH64: "arm64",
}

// Architecture returns the architecture of the static Linux executable at path, as the name that
// GOARCH has, such as "amd64". For any other file, it returns an error.
func Architecture(path string) (string, error) {
	binary, err := readBinary(path)
	var arch string
	if err == nil {
		arch, err = architecture(binary)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return arch, nil
}

// architecture returns the architecture of a static Linux executable, such as "amd64". For any
// other file, it returns an error.
//
// The image has no dynamic linker. A dynamically linked executable would fail in a container with
// the misleading error "no such file or directory".
func architecture(binary []byte) (string, error) {
	file, err := elf.NewFile(bytes.NewReader(binary))
	switch {
	case !bytes.HasPrefix(binary, []byte(elf.ELFMAG)):
		return "", errors.New("found no ELF file; expected a Linux executable")
	case err != nil:
		return "", errors.New("found an ELF file that is damaged or cut off; expected a Linux executable")
	}
	arch, supported := architectures[file.Machine]
	switch {
	case file.OSABI != elf.ELFOSABI_NONE && file.OSABI != elf.ELFOSABI_LINUX:
		return "", fmt.Errorf("expected a Linux executable, found one for %s", file.OSABI)
	case !supported || file.Class != elf.ELFCLASS64 || file.Data != elf.ELFDATA2LSB:
		return "", fmt.Errorf("found an executable for %s, %s, %s; expected one for amd64 or arm64", executable.MachineName(file.Machine), file.Class, file.Data)
	case file.Type != elf.ET_EXEC && file.Type != elf.ET_DYN || file.Entry == 0:
		return "", fmt.Errorf("found an ELF file of type %s with entry point %#x; expected an executable", file.Type, file.Entry)
	}
	if linker, dynamic := executable.DynamicLinker(file); dynamic {
		return "", fmt.Errorf("expected a statically linked executable, found one that needs %s; build it with CGO_ENABLED=0", cmp.Or(linker, "a dynamic linker"))
	}
	return arch, nil
}
