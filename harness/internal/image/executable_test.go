package image

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"testing"
)

func TestArchitecture(t *testing.T) {
	for _, test := range []struct {
		name   string
		binary elfFile
		arch   string
		errors []string // texts in the error; nil if there is no error
	}{
		{name: "static", binary: elfFile{}, arch: "amd64"},
		{name: "static, position-independent", binary: elfFile{kind: elf.ET_DYN}, arch: "amd64"},
		{name: "static, with the Linux ABI in its header", binary: elfFile{abi: elf.ELFOSABI_LINUX}, arch: "amd64"},
		{name: "arm64", binary: elfFile{machine: elf.EM_AARCH64}, arch: "arm64"},
		{name: "dynamic", binary: elfFile{interpreter: "/lib64/ld-linux-x86-64.so.2"},
			errors: []string{"expected a statically linked executable", "needs /lib64/ld-linux-x86-64.so.2;", "CGO_ENABLED=0"}},
		{name: "dynamic, position-independent", binary: elfFile{kind: elf.ET_DYN, interpreter: "/lib/ld"}, errors: []string{"needs /lib/ld;"}},
		{name: "shared library", binary: elfFile{kind: elf.ET_DYN, noEntry: true}, errors: []string{"found an ELF file of type ET_DYN"}},
		{name: "object file", binary: elfFile{kind: elf.ET_REL}, errors: []string{"type ET_REL"}},
		{name: "unsupported machine", binary: elfFile{machine: elf.EM_RISCV}, errors: []string{"found an executable for riscv64, "}},
		{name: "other operating system", binary: elfFile{abi: elf.ELFOSABI_FREEBSD}, errors: []string{"expected a Linux executable, found one for ELFOSABI_FREEBSD"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			arch, err := architecture(test.binary.bytes(t))
			if arch != test.arch || (err != nil) != (test.errors != nil) {
				t.Errorf("architecture() = %q, error %v; want %q", arch, err, test.arch)
			}
			expectError(t, err, test.errors)
		})
	}
}

func TestArchitectureOfTruncatedBinary(t *testing.T) {
	whole := elfFile{interpreter: "/lib/ld"}.bytes(t)
	for length := range len(whole) {
		if arch, err := architecture(whole[:length]); err == nil {
			t.Fatalf("architecture of the first %d of %d bytes = %q, want an error", length, len(whole), arch)
		}
	}
}

// elfFile describes an ELF file. The zero value is a static executable for Linux on amd64.
type elfFile struct {
	machine     elf.Machine
	abi         elf.OSABI
	kind        elf.Type
	noEntry     bool
	interpreter string
}

// bytes returns the content of an ELF file that has a header and program headers, but no code.
func (f elfFile) bytes(t *testing.T) []byte {
	t.Helper()
	const headerSize, segmentSize = 64, 56
	header := elf.Header64{
		Ident:     [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT), byte(f.abi)},
		Type:      uint16(max(f.kind, elf.ET_REL)),
		Machine:   uint16(f.machine),
		Version:   uint32(elf.EV_CURRENT),
		Entry:     0x401000,
		Phoff:     headerSize,
		Ehsize:    headerSize,
		Phentsize: segmentSize,
		Phnum:     1,
	}
	if f.kind == elf.ET_NONE {
		header.Type = uint16(elf.ET_EXEC)
	}
	if f.machine == elf.EM_NONE {
		header.Machine = uint16(elf.EM_X86_64)
	}
	if f.noEntry {
		header.Entry = 0
	}
	segment := elf.Prog64{Type: uint32(elf.PT_LOAD), Off: headerSize + segmentSize}
	if f.interpreter != "" {
		segment.Type = uint32(elf.PT_INTERP)
		segment.Filesz = uint64(len(f.interpreter) + 1)
	}
	var out bytes.Buffer
	for _, part := range []any{header, segment, append([]byte(f.interpreter), 0)} {
		if err := binary.Write(&out, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}
