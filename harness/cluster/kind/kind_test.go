package kind

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	kindexec "sigs.k8s.io/kind/pkg/exec"
	"sigs.k8s.io/yaml"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/embedded"
	"github.com/kube-gauntlet/gauntlet/harness/process"
)

func TestBuiltImageIsOfThePinnedKubernetes(t *testing.T) {
	if want := "gauntlet/node:" + embedded.KubernetesVersion; BuiltImage != want {
		t.Errorf("BuiltImage is %s, harness/upstream builds %s", BuiltImage, want)
	}
}

func TestOptionsAreValidated(t *testing.T) {
	valid := Options{Dir: "d", LogDir: "l"}
	if err := valid.validate(); err != nil {
		t.Errorf("valid options: %v", err)
	}
	for _, test := range []struct {
		change func(*Options)
		want   string
	}{
		{func(o *Options) { o.Workers = -1 }, "-1 workers: want 0 to 20"},
		{func(o *Options) { o.Workers = WorkersMax + 1 }, "21 workers"},
		{func(o *Options) { o.Within = -1 }, "start within -1ns: want 0 to 1h0m0s"},
		{func(o *Options) { o.Dir = "" }, "needs a directory"},
		{func(o *Options) { o.LogDir = "" }, "needs a directory"},
	} {
		o := valid
		test.change(&o)
		if _, err := Start(t.Context(), o); !errorHas(err, test.want) {
			t.Errorf("Start(%+v) = %v, want %q", o, err, test.want)
		}
	}
}

func TestClusterConfig(t *testing.T) {
	config, err := clusterConfig(Options{Workers: 2}, "/state/node")
	if err != nil {
		t.Fatal(err)
	}
	var roles []string
	for _, node := range config.Nodes {
		roles = append(roles, string(node.Role))
	}
	if got := strings.Join(roles, " "); got != "control-plane worker worker" {
		t.Errorf("nodes %s", got)
	}
	want := v1alpha4.Mount{HostPath: "/state/node", ContainerPath: nodeFilesDir, Readonly: true}
	if mounts := config.Nodes[0].ExtraMounts; len(mounts) != 1 || mounts[0] != want {
		t.Errorf("mounts %+v", mounts)
	}
	args := map[string]map[string]string{}
	for _, patch := range config.KubeadmConfigPatches {
		var parsed struct {
			APIVersion                              string
			APIServer, ControllerManager, Scheduler struct{ ExtraArgs map[string]string }
			Etcd                                    struct {
				Local struct{ ExtraArgs map[string]string }
			}
		}
		if err := yaml.Unmarshal([]byte(patch), &parsed); err != nil {
			t.Fatalf("%v in\n%s", err, patch)
		}
		if parsed.APIVersion != "" {
			t.Errorf("a patch is bound to %s, which another version of Kubernetes does not have", parsed.APIVersion)
		}
		for name, extra := range map[string]map[string]string{
			"apiserver": parsed.APIServer.ExtraArgs, "kcm": parsed.ControllerManager.ExtraArgs, "scheduler": parsed.Scheduler.ExtraArgs,
			"etcd": parsed.Etcd.Local.ExtraArgs,
		} {
			if extra != nil {
				args[name] = extra
			}
		}
	}
	for _, test := range []struct{ component, flag, want string }{
		{"apiserver", "token-auth-file", nodeFilesDir + "/" + tokensFile},
		{"kcm", "controllers", "*,bootstrap-signer-controller,token-cleaner-controller,-" + strings.Join(cluster.SubjectControllers, ",-")},
		{"kcm", "leader-elect", "false"},
		{"scheduler", "leader-elect", "false"},
		{"scheduler", "controllers", ""},
		{"etcd", "unsafe-no-fsync", "true"},
	} {
		if got := args[test.component][test.flag]; got != test.want {
			t.Errorf("%s --%s=%s, want %s", test.component, test.flag, got, test.want)
		}
	}
}

func TestNodeNames(t *testing.T) {
	for workers, want := range map[int]string{
		0: "g-control-plane", 1: "g-control-plane g-worker", 3: "g-control-plane g-worker g-worker2 g-worker3",
	} {
		if got := strings.Join(nodeNames("g", workers), " "); got != want {
			t.Errorf("%d workers: %s, want %s", workers, got, want)
		}
	}
}

func TestWiring(t *testing.T) {
	at := func(node, ip, pods string) place {
		return place{node, netip.MustParseAddr(ip), netip.MustParsePrefix(pods)}
	}
	a, b, c := at("a", "172.18.0.2", "10.244.0.0/24"), at("b", "172.18.0.3", "10.244.1.0/24"), at("c", "172.18.0.4", "10.244.2.0/24")
	script := wiring(b, []place{a, b, c})
	for _, want := range []string{
		"ip route replace 10.244.0.0/24 via 172.18.0.2\n",
		"ip route replace 10.244.2.0/24 via 172.18.0.4\n",
		"-A POSTROUTING -s 10.244.1.0/24 ! -d 10.244.0.0/16 -j MASQUERADE\n",
		`"ranges": [[{"subnet": "10.244.1.0/24"}]]`,
	} {
		if !strings.Contains(script, want) {
			t.Errorf("no %q in\n%s", want, script)
		}
	}
	if strings.Contains(script, "route replace 10.244.1.0/24") {
		t.Errorf("a node is routed to itself:\n%s", script)
	}
}

func TestSubnetOf(t *testing.T) {
	for cidr, want := range map[string]string{"": "has no subnet for its pods yet", "10.244.x": `has the subnet "10.244.x"`, "10.244.3.0/24": ""} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{PodCIDR: cidr}}
		if got, err := subnetOf(node); !errorHas(err, want) || err == nil && got.String() != cidr {
			t.Errorf("subnetOf(%q) = %v, %v; want error %q", cidr, got, err, want)
		}
	}
}

func TestStateOf(t *testing.T) {
	for _, test := range []struct {
		owner          process.Existence
		keep, complete bool
		want           State
	}{
		{process.Lives, false, false, InUse},
		{process.Lives, true, true, InUse},
		{process.Gone, true, true, Standing},
		{process.Gone, true, false, LeftBehind}, // killed while it was brought up
		{process.Gone, false, true, LeftBehind},
		{process.Elsewhere, true, true, Standing},
		{process.Elsewhere, false, true, Elsewhere},
		{process.Elsewhere, true, false, Elsewhere},
	} {
		if got := stateOf(test.owner, test.keep, test.complete); got != test.want {
			t.Errorf("owner %s, keep %v, complete %v: %s, want %s", test.owner, test.keep, test.complete, got, test.want)
		}
	}
}

func TestParseNetwork(t *testing.T) {
	self, err := process.Self()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	line := "gauntlet-x\t" + self.String() + "\ttrue\t" + dir + "\timage:1"
	want := Found{Name: "gauntlet-x", State: InUse, Owner: self.String(), Dir: dir, Image: "image:1"}
	if got, err := parseNetwork(line); err != nil || got != want {
		t.Errorf("parseNetwork = %+v, %v; want %+v", got, err, want)
	}
	self.StartTicks-- // an earlier process with the same number
	line = "gauntlet-x\t" + self.String() + "\ttrue\t" + dir + "\timage:1"
	if got, err := parseNetwork(line); err != nil || got.State != LeftBehind {
		t.Errorf("without a kubeconfig: %+v, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(dir, kubeconfigFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := parseNetwork(line); err != nil || got.State != Standing {
		t.Errorf("with a kubeconfig: %+v, %v", got, err)
	}
	for _, bad := range []string{"", "gauntlet-x\tme\ttrue\t/dir\timage", "x\ty"} {
		if _, err := parseNetwork(bad); err == nil {
			t.Errorf("parseNetwork(%q) was accepted", bad)
		}
	}
}

func TestExplain(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		want error
	}{
		{"docker's own", &commandError{args: []string{"docker", "ps"}, output: "Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?", err: errors.New("exit status 1")}, ErrEngineDown},
		{"a socket of others", &commandError{output: "permission denied while trying to connect to the Docker daemon socket", err: errors.New("exit status 1")}, errNoPermission},
		{"kind's", &kindexec.RunError{Command: []string{"docker", "run"}, Output: []byte("Bind for 127.0.0.1:4 failed: port is already allocated."), Inner: errors.New("exit status 125")}, errPortTaken},
		{"not a node image", errors.New(`could not find a log line that matches "x"`), errNoNode},
		{"no subnets", &commandError{output: "could not find an available, non-overlapping IPv4 address pool among the defaults", err: errors.New("exit status 1")}, errNoSubnet},
	} {
		if got := explain(test.err); !errors.Is(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
	unknown := errors.New("something else")
	if got := explain(unknown); !errors.Is(got, unknown) || got.Error() != unknown.Error() {
		t.Errorf("an error of which nothing is known became %v", got)
	}
	if explain(nil) != nil {
		t.Error("no error became one")
	}
	long := explain(&kindexec.RunError{Command: []string{"kubeadm", "init"}, Output: []byte(strings.Repeat("x", 5000) + " the end"), Inner: errors.New("exit status 1")})
	if text := long.Error(); len(text) > outputBytesMax+200 || !strings.Contains(text, "kubeadm init: exit status 1") || !strings.HasSuffix(text, " the end") {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}

// fakeDocker puts a `docker` on PATH that is a shell script.
func fakeDocker(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, program), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
}

func TestChooseImage(t *testing.T) {
	const has = `[ "$1" = version ] && exit 0
[ "$1" = image ] && { case " $HAS " in *" $5 "*) exit 0 ;; esac; echo "Error: No such image: $5" >&2; exit 1; }
[ "$1" = pull ] && { [ "$3" = "$PULLS" ] && exit 0; echo 'lookup registry: no such host' >&2; exit 1; }
exit 9`
	for _, test := range []struct{ name, asked, has, pulls, want, wantErr string }{
		{name: "the one asked for", asked: "mine:1", has: "mine:1 " + BuiltImage, want: "mine:1"},
		{name: "the one built here", has: BuiltImage + " " + ReleasedImage, want: BuiltImage},
		{name: "the released one", has: ReleasedImage, want: ReleasedImage},
		{name: "pulled", pulls: ReleasedImage, want: ReleasedImage},
		{name: "no registry", wantErr: "make node-image"},
		{name: "asked for what is not there", asked: "mine:1", has: BuiltImage, wantErr: "the node image mine:1 is not here and cannot be pulled"},
	} {
		t.Run(test.name, func(t *testing.T) {
			fakeDocker(t, has)
			t.Setenv("HAS", test.has)
			t.Setenv("PULLS", test.pulls)
			if got, err := ChooseImage(t.Context(), test.asked); got != test.want || !errorHas(err, test.wantErr) {
				t.Errorf("ChooseImage = %q, %v; want %q, error with %q", got, err, test.want, test.wantErr)
			}
		})
	}
}

// Without an engine that works nothing is started, and the error says what to do.
func TestStartWithoutAnEngine(t *testing.T) {
	for _, test := range []struct{ name, script, want string }{
		{"none", "", "there is no container engine: `docker` is not on PATH"},
		{"down", "echo 'Cannot connect to the Docker daemon at unix:///var/run/docker.sock.' >&2; exit 1", "the container engine does not answer (start it"},
		{"not ours to use", "echo 'permission denied while trying to connect to the Docker daemon socket' >&2; exit 1", "no permission to use the container engine"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.script == "" {
				t.Setenv("PATH", t.TempDir())
			} else {
				fakeDocker(t, test.script)
			}
			dir := t.TempDir()
			if _, err := Start(t.Context(), Options{Dir: dir, LogDir: dir}); !errorHas(err, test.want) {
				t.Errorf("Start: %v, want %q", err, test.want)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left %v, %v", left, err)
			}
		})
	}
}

// A cluster's directory is known by its marker; no other is removed.
func TestRemoveSparesForeignDirectories(t *testing.T) {
	fakeDocker(t, "exit 0")
	for marker, gone := range map[string]bool{"gauntlet-x\n": true, "gauntlet-y\n": false} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, markerFile), []byte(marker), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Remove(t.Context(), Found{Name: "gauntlet-x", Dir: dir}); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) != gone {
			t.Errorf("marker %q: %v, want gone %v", marker, err, gone)
		}
	}
}

func TestPauseImage(t *testing.T) {
	node := &corev1.Node{Status: corev1.NodeStatus{Images: []corev1.ContainerImage{{Names: []string{"x:1"}}, {Names: []string{"y@sha256:1", "registry.k8s.io/pause:3.10"}}}}}
	if got, err := PauseImage(node); got != "registry.k8s.io/pause:3.10" || err != nil {
		t.Errorf("PauseImage = %q, %v", got, err)
	}
	if _, err := PauseImage(&corev1.Node{}); !errorHas(err, "holds no registry.k8s.io/pause") {
		t.Errorf("a node without: %v", err)
	}
}

// errorHas reports whether the error's text contains all of want; an empty want
// asks for no error.
func errorHas(err error, want ...string) bool {
	for _, part := range want {
		if part == "" {
			return err == nil
		}
		if err == nil || !strings.Contains(err.Error(), part) {
			return false
		}
	}
	return true
}
