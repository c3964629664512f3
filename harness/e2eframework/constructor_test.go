package e2eframework_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestConstructor verifies that a suite for e2e-framework's own kind provider also runs with a
// provider of this package. The test changes only the constructor in the suite testdata/kindsuite.
func TestConstructor(t *testing.T) {
	path, err := filepath.Abs(filepath.Join("testdata", "kindsuite", "suite_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	const constructor, importLine = "kind.NewProvider()", `	"sigs.k8s.io/e2e-framework/support/kind"` + "\n"
	suite := fileText(t, path)
	if strings.Count(suite, constructor) != 1 || strings.Count(suite, importLine) != 1 || strings.Contains(suite, "gauntlet/") {
		t.Fatalf("%s: expected one %s, and no import of gauntlet", path, constructor)
	}
	const ours = `	"github.com/kube-gauntlet/gauntlet/harness/e2eframework"` + "\n"
	suite = strings.Replace(suite, constructor, "e2eframework.NewEmbedded()", 1)
	suite = strings.Replace(suite, importLine, importLine+ours, 1)
	changed := filepath.Join(t.TempDir(), "suite_test.go")
	if err := os.WriteFile(changed, []byte(suite), 0o644); err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		t.Fatal(err)
	}
	overlayPath := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(overlayPath, overlay, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"vet", "./testdata/kindsuite"}, // the unchanged suite
		{"test", "-count=1", "-v", "-overlay=" + overlayPath, "./testdata/kindsuite", "-args", "--labels=type=workload", "--fail-fast"},
	} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		output, err := cmd.CombinedOutput()
		if err != nil || args[0] == "test" && !strings.Contains(string(output), "PASS: TestShop/shop/two_workers") {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, output)
		}
	}
}
