package executable

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// elfFile returns the headers of an ELF executable. If linker is not "", the executable needs
// this dynamic linker.
func elfFile(t *testing.T, machine elf.Machine, kind elf.Type, linker string) string {
	t.Helper()
	const headerSize, segmentSize = 64, 56
	header := elf.Header64{
		Type: uint16(kind), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT), Entry: 0x1000, Ehsize: headerSize,
	}
	copy(header.Ident[:], []byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)})
	var b bytes.Buffer
	parts := []any{&header}
	if linker != "" {
		header.Phoff, header.Phentsize, header.Phnum = headerSize, segmentSize, 1
		path := append([]byte(linker), 0)
		parts = append(parts, elf.Prog64{Type: uint32(elf.PT_INTERP), Off: headerSize + segmentSize, Filesz: uint64(len(path))}, path)
	}
	for _, part := range parts {
		if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

func TestCheck(t *testing.T) {
	here := machines[runtime.GOARCH][0]
	other := elf.EM_AARCH64
	if here == other {
		other = elf.EM_X86_64
	}
	for _, test := range []struct{ name, content, want string }{
		{"script", "#!/bin/sh\ntrue\n", ""},
		{"script with an argument", "#! /usr/bin/env sh\n", ""},
		{"script with arguments of env", "#!/usr/bin/env -S A=b none\n", ""},
		{"script without its interpreter", "#!/no/such/shell\n", "found a script whose interpreter /no/such/shell is missing: no such file"},
		{"script without a line break", "#!/no/such/shell", "is missing: no such file or directory"},
		{"script with a carriage return", "#!/bin/sh\r\ntrue\r\n", `found a script whose first line "#!/bin/sh\r" ends with a carriage return`},
		{"script whose interpreter is a directory", "#!/tmp\n", "found a script whose interpreter /tmp is a directory; expected an executable file"},
		{"script of a missing program", "#!/usr/bin/env no-such-program\n", "found a script whose interpreter no-such-program is in no directory of PATH; expected an installed program"},
		{"program for macOS", "\xcf\xfa\xed\xfe\x0c", "found an executable for macOS; expected an executable file for linux/" + runtime.GOARCH},
		{"program for Windows", "MZ\x90\x00", "found an executable for Windows; expected"},
		{"archive", "\x1f\x8b\x08\x00", "found a gzip archive; expected"},
		{"script without an interpreter", "#!\n", "names no interpreter"},
		{"empty", "", "found an empty file"},
		{"text", "hello", "found neither an ELF file nor a script"},
		{"one byte", "\x7f", "found neither an ELF file nor a script"},
		{"damaged", elf.ELFMAG, "found an ELF file that is damaged or cut off; expected an executable file"},
		{"static", elfFile(t, here, elf.ET_EXEC, ""), ""},
		{"static and position-independent", elfFile(t, here, elf.ET_DYN, ""), ""},
		{"object file", elfFile(t, here, elf.ET_REL, ""), "found an ELF file of type ET_REL"},
		{"other machine", elfFile(t, other, elf.ET_EXEC, ""), "found an executable for " + MachineName(other) + "; expected one for " + runtime.GOARCH},
		{"dynamic", elfFile(t, here, elf.ET_DYN, "/bin/sh"), ""},
		{"dynamic without its linker", elfFile(t, here, elf.ET_DYN, "/lib/ld-none.so"), "dynamic linker /lib/ld-none.so is missing: no such file or directory; install it, or build with CGO_ENABLED=0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := check(strings.NewReader(test.content), runtime.GOARCH, t.TempDir())
			if test.name == "empty" { // Check detects this by the size of the file
				path := filepath.Join(t.TempDir(), "empty")
				if err := os.WriteFile(path, nil, 0o755); err != nil {
					t.Fatal(err)
				}
				err = Check(path)
			}
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error %v, want one that contains %q", err, test.want)
			}
		})
	}
	// With an emulator, the kernel may run an executable of another machine.
	formats := t.TempDir()
	if err := os.WriteFile(filepath.Join(formats, "qemu"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := check(strings.NewReader(elfFile(t, other, elf.ET_EXEC, "")), runtime.GOARCH, formats); err != nil {
		t.Errorf("other machine with an emulator: error %v", err)
	}
}

// TestCheckItself checks that Check accepts the running test binary and rejects a directory.
func TestCheckItself(t *testing.T) {
	itself, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := Check(itself); err != nil {
		t.Errorf("Check(%s): error %v", itself, err)
	}
	if err := Check(t.TempDir()); err == nil || !strings.Contains(err.Error(), "found a directory; expected an executable file") {
		t.Errorf("Check() of a directory: error %v", err)
	}
}

// TestScriptOfItself checks that Check rejects a script that names itself as its interpreter.
func TestScriptOfItself(t *testing.T) {
	path := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(path, []byte("#!"+path+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Check(path); err == nil || !strings.Contains(err.Error(), "found a script that names itself") {
		t.Errorf("error %v; want that the script names itself", err)
	}
}
