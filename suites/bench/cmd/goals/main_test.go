package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// file writes the output of benchmarks to a file, and returns its path.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "benchmarks.txt")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestGoals(t *testing.T) {
	now := file(t, `goos: linux
pkg: example.com/check
BenchmarkHistory-2   	       1	28134790703 ns/op	         7.007 CPU-s/million	        1.1 cost-ratio	         3.4 s/million
some other output
BenchmarkControllers-2 1 5 ns/op 0.7 ladder-100-CPU-ratio 0.9 idle-CPU-ratio
BenchmarkCreate/proxy-2 1000 200 ns/op
BenchmarkScenarios-2 1 5 ns/op 8 scenarios/min/core
PASS
`)
	base := file(t, `BenchmarkCreate/proxy-2 1000 100 ns/op
BenchmarkHistory-2 1 28134790703 ns/op 3.3 s/million
BenchmarkScenarios-2 1 5 ns/op 16 scenarios/min/core
`)
	var out strings.Builder
	if err := run(&out, []string{now}, base); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"History s/million 3.4 ≤ 2 missed", "History cost-ratio 1.1 ≤ 1.2 met", "Proxy proxied/direct ≤ 1.05 not measured",
		"Controllers idle-CPU-ratio 0.9 ≤ 0.8 missed", "Controllers ladder-100-CPU-ratio 0.7 ≤ 0.8 met", "Scenarios scenarios/min/core 8 ≥ 20 missed",
		"2 goals met, 3 missed, 2 not measured",
		"worse by 100 %: Create/proxy ns/op: 200, earlier 100", "worse by 100 %: Scenarios scenarios/min/core: 8, earlier 16",
		"2 of 3 values that both results have are worse by more than 10 %",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the output lacks %q:\n%s", want, out.String())
		}
	}
}

func TestGoalsErrors(t *testing.T) {
	empty := file(t, "PASS\n")
	for _, c := range []struct {
		name  string
		paths []string
		base  string
		want  string
	}{
		{"no file", nil, "", "found no file; expected the output of benchmarks"},
		{"missing file", []string{"/none"}, "", "no such file"},
		{"no result", []string{empty}, "", "found no result in " + empty},
		{"no result in the base", []string{file(t, "BenchmarkA-2 10 5 ns/op\n")}, empty, "found no result in " + empty},
		{"damaged line", []string{file(t, "BenchmarkA-2 1 x ns/op\n")}, "", "benchmarks.txt:1: parsing measurement"},
	} {
		var out strings.Builder
		if err := run(&out, c.paths, c.base); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want %q", c.name, err, c.want)
		}
	}
}
