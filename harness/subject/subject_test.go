package subject

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// TestCheckImage checks which references of images are valid.
func TestCheckImage(t *testing.T) {
	for reference, want := range map[string]string{
		"ubuntu": "", "a/b_c/d-e.f:v1.0-rc_1": "", "localhost:5000/a__b/c--d": "", "ubuntu@sha256:" + strings.Repeat("a", 64): "",
		"..": `found the part ".."`, "-x": `found the part "-x"`, "example.com/a//b": `found the part ""`, "a:-b": `found the tag "-b"`, "a b": "could not parse",
	} {
		err := CheckImage(reference)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", reference, err, want)
		}
	}
}

func TestParseTarget(t *testing.T) {
	dir := t.TempDir()
	executable := filepath.Join(dir, "manager")
	plain := filepath.Join(dir, "notes.txt")
	for path, mode := range map[string]os.FileMode{executable: 0o755, plain: 0o644} {
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		in, want, wantErr string
	}{
		{in: "ours", want: "ours"},
		{in: "upstream", want: "upstream"},
		{in: "exec:" + executable, want: "exec:" + executable},
		{in: "image:example.com/manager:v1", want: "image:example.com/manager:v1"},
		{in: "image:manager", want: "image:manager"},
		{in: "image:", wantErr: `found "image:"; expected image:REF with the reference of an image`},
		{in: "image:a b", wantErr: `found "image:a b"; expected image:REF with the reference of an image`},
		{in: "", wantErr: `found ""; expected ours, upstream, exec:PATH, image:REF or go:PATH`},
		{in: "theirs", wantErr: `found "theirs"; expected ours, upstream, exec:PATH, image:REF or go:PATH`},
		{in: "ours:x", wantErr: `found "ours:x"; expected ours, upstream, exec:PATH, image:REF or go:PATH`},
		{in: "go:target.go", wantErr: "go:target.go: found a file; expected the directory of a Go package"},
		{in: "go:testdata/none", wantErr: `go:testdata/none: expected a directory with a Go package: no such file or directory`},
		{in: "go:" + t.TempDir(), wantErr: `found no Go file in the directory; expected a Go package`},
		{in: "exec", wantErr: `found "exec"; expected ours, upstream, exec:PATH, image:REF or go:PATH`},
		{in: "exec:" + plain, wantErr: "found a file of mode -rw-r--r--; expected an executable file"},
		{in: "exec:" + dir, wantErr: "found a directory; expected an executable file"},
		{in: "exec:" + dir + "/none", wantErr: "no such file or directory; expected an executable file"},
	} {
		t.Run(test.in, func(t *testing.T) {
			target, err := ParseTarget(test.in)
			switch {
			case test.wantErr == "" && err != nil:
				t.Fatalf("unexpected error: %v", err)
			case test.wantErr != "" && (err == nil || !strings.Contains(err.Error(), test.wantErr)):
				t.Fatalf("error %v, want one with %q", err, test.wantErr)
			case test.wantErr == "" && target.String() != test.want:
				t.Fatalf("got %q, want %q", target, test.want)
			}
		})
	}
}

// TestCheckControllers checks that CheckControllers rejects controllers that the target ours does
// not contain.
func TestCheckControllers(t *testing.T) {
	unknown := []kube.Controller{{Name: "statefulset-controller"}}
	for _, controllers := range [][]kube.Controller{nil, kube.OrDefault(nil)[1:2]} {
		if err := Ours.CheckControllers(controllers); err != nil {
			t.Error(err)
		}
	}
	if err := Upstream.CheckControllers(unknown); err != nil {
		t.Error(err)
	}
	const want = "subject ours: cannot run statefulset-controller: expected only the controllers replicationcontroller-controller, replicaset-controller, deployment-controller, endpoints-controller, or the subject upstream, exec:PATH or image:REF"
	if err := Ours.CheckControllers(unknown); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestFlagsOfControllers(t *testing.T) {
	controllers := []kube.Controller{{Name: "statefulset-controller", ConcurrencyFlag: "--concurrent-statefulset-syncs"}, {Name: "other"}}
	flags := strings.Join(Settings{Controllers: controllers, Concurrency: 3}.Flags("k", nil), " ")
	for _, want := range []string{"--controllers=statefulset-controller,other ", " --concurrent-statefulset-syncs=3 -v=2 "} {
		if !strings.Contains(flags, want) || strings.Count(flags, "--concurrent") != 1 {
			t.Errorf("flags %s, want %q", flags, want)
		}
	}
	flags = strings.Join(Settings{Concurrency: 5}.Flags("k", nil), " ")
	want := "--controllers=" + strings.Join(kube.DefaultControllers(), ",") + " "
	if !strings.Contains(flags, want) || strings.Count(flags, "-syncs=5") != 4 {
		t.Errorf("flags %s, want %q and the workers of four controllers", flags, want)
	}
}

// TestGrant verifies which ClusterRoles Grant binds if kube-controller-manager is the program
// under test. Grant must bind managerRole and the controllers' roles, and no others.
func TestGrant(t *testing.T) {
	controllers := []kube.Controller{{Name: "statefulset-controller", ClusterRole: "system:controller:statefulset-controller"}}
	admin := fake.NewClientset()
	if err := Grant(t.Context(), admin, Upstream, controllers, User(), LeaseNamespace); err != nil {
		t.Fatal(err)
	}
	bindings, err := admin.RbacV1().ClusterRoleBindings().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var roles []string
	for _, binding := range bindings.Items {
		roles = append(roles, binding.RoleRef.Name)
	}
	slices.Sort(roles)
	if want := []string{"system:controller:statefulset-controller", "system:kube-controller-manager"}; !slices.Equal(roles, want) {
		t.Errorf("cluster roles %q, want %q", roles, want)
	}
}

func TestExecutable(t *testing.T) {
	dir := t.TempDir()
	ours, upstream := filepath.Join(dir, "ours"), filepath.Join(dir, "upstream")
	if _, err := Ours.Executable(ours, upstream); err == nil || !strings.Contains(err.Error(), "make build") {
		t.Errorf("a missing binary of ours: error %v, want one that names `make build`", err)
	}
	if _, err := Upstream.Executable(ours, upstream); err == nil || !strings.Contains(err.Error(), "gauntlet setup") {
		t.Errorf("a missing upstream binary: error %v, want one that names `gauntlet setup`", err)
	}
	if err := os.WriteFile(upstream, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := Upstream.Executable(ours, upstream); err != nil || got != upstream {
		t.Errorf("got %q, %v; want %q", got, err, upstream)
	}
	image, err := ParseTarget("image:manager:v1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := image.Executable(ours, upstream); err == nil || !strings.Contains(err.Error(), "expected a provider that runs the subject in pods") {
		t.Errorf("an image as an executable: error %v, want one that says where images run", err)
	}
	if reference, ok := image.Image(); reference != "manager:v1" || !ok {
		t.Errorf("the image's reference is %q, %t", reference, ok)
	}
}
