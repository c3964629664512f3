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
	kinderrors "sigs.k8s.io/kind/pkg/errors"
	kindexec "sigs.k8s.io/kind/pkg/exec"
	"sigs.k8s.io/yaml"

	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/embedded"
	"github.com/kube-gauntlet/gauntlet/harness/internal/process"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

func TestKubeletLogShowsInotifyLimit(t *testing.T) {
	failed := errors.New("failed to init node")
	for _, test := range []struct {
		name string
		err  error
		log  string
		want string
	}{
		{"other failure", failed, "connection refused", "failed to init node\nlast lines of the kubelet log on node n1:\nconnection refused"},
		{"inotify limit", failed, "inotify_init: too many open files", errInotifyLimit.Error() + ": failed to init node\nlast lines"},
		{"reason known already", errInotifyLimit, "Too many open files", errInotifyLimit.Error() + "\nlast lines"},
	} {
		if got := withKubeletLog(test.err, "n1", test.log); !errors.Is(got, test.err) || !strings.HasPrefix(got.Error(), test.want) {
			t.Errorf("%s: error %q, want %q first", test.name, got, test.want)
		}
	}
}

func TestBuiltImageHasPinnedVersion(t *testing.T) {
	if want := "gauntlet/node:" + embedded.KubernetesVersion; BuiltImage != want {
		t.Errorf("BuiltImage is %s, want %s: the version that package setup pins", BuiltImage, want)
	}
}

func TestOptionsAreValidated(t *testing.T) {
	valid := Options{Dir: "d", LogDir: "l"}
	if err := valid.validate(); err != nil {
		t.Errorf("validate() of valid options: %v, want no error", err)
	}
	for _, test := range []struct {
		change func(*Options)
		want   string
	}{
		{func(o *Options) { o.Workers = -1 }, "-1 workers: expected 0 to 20"},
		{func(o *Options) { o.Workers = WorkersMax + 1 }, "21 workers"},
		{func(o *Options) { o.Config = &v1alpha4.Cluster{} }, "configuration with 0 control plane nodes: expected 1"},
		{func(o *Options) { o.Within = -1 }, "start timeout -1ns: expected 0 to 1h0m0s"},
		{func(o *Options) { o.Dir = "" }, "expected a state directory"},
		{func(o *Options) { o.LogDir = "" }, "expected a state directory"},
	} {
		o := valid
		test.change(&o)
		if _, err := Start(t.Context(), o); !errorHas(err, test.want) {
			t.Errorf("Start(%+v): error %v, want one that contains %q", o, err, test.want)
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
		t.Errorf("node roles %q, want %q", got, "control-plane worker worker")
	}
	want := v1alpha4.Mount{HostPath: "/state/node", ContainerPath: nodeFilesDir, Readonly: true}
	if mounts := config.Nodes[0].ExtraMounts; len(mounts) != 1 || mounts[0] != want {
		t.Errorf("mounts of the control plane node: %+v, want only %+v", mounts, want)
	}
	user := &v1alpha4.Cluster{
		FeatureGates:         map[string]bool{"X": true},
		KubeadmConfigPatches: []string{"kind: JoinConfiguration"},
		Nodes: []v1alpha4.Node{
			{Role: v1alpha4.WorkerRole, Image: "theirs", ExtraMounts: []v1alpha4.Mount{{HostPath: "/data"}}},
			{Role: v1alpha4.ControlPlaneRole, ExtraPortMappings: []v1alpha4.PortMapping{{ContainerPort: 80}}},
		},
	}
	custom, err := clusterConfig(Options{Config: user}, "/state/node")
	if err != nil {
		t.Fatal(err)
	}
	if first, second := custom.Nodes[0], custom.Nodes[1]; len(custom.Nodes) != 2 || first.ExtraPortMappings[0].ContainerPort != 80 || len(first.ExtraMounts) != 1 ||
		second.Role != v1alpha4.WorkerRole || second.ExtraMounts[0].HostPath != "/data" || second.Image == "theirs" || !custom.FeatureGates["X"] ||
		len(custom.KubeadmConfigPatches) != len(config.KubeadmConfigPatches)+1 || len(user.KubeadmConfigPatches) != 1 || len(user.Nodes[1].ExtraMounts) != 0 {
		t.Errorf("cluster with a configuration of the user: %+v", custom)
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
			t.Errorf("a patch has apiVersion %s, want none, because other Kubernetes versions use another one", parsed.APIVersion)
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
		{"kcm", "controllers", "*,bootstrap-signer-controller,token-cleaner-controller,-" + strings.Join(kube.DefaultControllers(), ",-")},
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

// TestControllersUnderTest verifies that the kubeadm patches disable only the controllers under
// test.
func TestControllersUnderTest(t *testing.T) {
	patches, err := kubeadmPatches(Options{Controllers: []kube.Controller{{Name: "statefulset-controller"}}})
	if err != nil {
		t.Fatal(err)
	}
	const want = "controllers: '*,bootstrap-signer-controller,token-cleaner-controller,-statefulset-controller'\n"
	if !strings.Contains(patches[0], want) {
		t.Errorf("patch without %q:\n%s", want, patches[0])
	}
}

// TestDNS verifies that kubeadm installs CoreDNS only in clusters with Options.DNS.
func TestDNS(t *testing.T) {
	for _, dns := range []bool{false, true} {
		patches, err := kubeadmPatches(Options{DNS: dns})
		if err != nil {
			t.Fatal(err)
		}
		if skipped := strings.Contains(strings.Join(patches, ""), "addon/coredns"); skipped == dns {
			t.Errorf("DNS %v: kubeadm skips CoreDNS: %v", dns, skipped)
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

func TestNetworkScript(t *testing.T) {
	at := func(node, ip, pods string) nodeNetwork {
		return nodeNetwork{node, netip.MustParseAddr(ip), netip.MustParsePrefix(pods)}
	}
	a, b, c := at("a", "172.18.0.2", "10.244.0.0/24"), at("b", "172.18.0.3", "10.244.1.0/24"), at("c", "172.18.0.4", "10.244.2.0/24")
	script := networkScript(b, []nodeNetwork{a, b, c})
	for _, want := range []string{
		"ip route replace 10.244.0.0/24 via 172.18.0.2\n",
		"ip route replace 10.244.2.0/24 via 172.18.0.4\n",
		"-A POSTROUTING -s 10.244.1.0/24 ! -d 10.244.0.0/16 -j MASQUERADE\n",
		`"ranges": [[{"subnet": "10.244.1.0/24"}]]`,
	} {
		if !strings.Contains(script, want) {
			t.Errorf("the script does not contain %q:\n%s", want, script)
		}
	}
	if strings.Contains(script, "route replace 10.244.1.0/24") {
		t.Errorf("the script adds a route from the node to itself:\n%s", script)
	}
}

func TestSubnetOf(t *testing.T) {
	for cidr, want := range map[string]string{"": "has no pod subnet yet", "10.244.x": `has an invalid pod subnet "10.244.x"`, "10.244.3.0/24": ""} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{PodCIDR: cidr}}
		if got, err := subnetOf(node); !errorHas(err, want) || err == nil && got.String() != cidr {
			t.Errorf("subnetOf(%q) = %v, error %v; want an error that contains %q", cidr, got, err, want)
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
		{process.Gone, true, false, LeftBehind}, // killed during the start
		{process.Gone, false, true, LeftBehind},
		{process.Elsewhere, true, true, Standing},
		{process.Elsewhere, false, true, Elsewhere},
		{process.Elsewhere, true, false, Elsewhere},
	} {
		if got := stateOf(test.owner, test.keep, test.complete); got != test.want {
			t.Errorf("stateOf(owner %s, keep %v, complete %v) = %s, want %s", test.owner, test.keep, test.complete, got, test.want)
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
		t.Errorf("parseNetwork() = %+v, error %v; want %+v", got, err, want)
	}
	self.StartTicks-- // an earlier process with the same PID
	line = "gauntlet-x\t" + self.String() + "\ttrue\t" + dir + "\timage:1"
	if got, err := parseNetwork(line); err != nil || got.State != LeftBehind {
		t.Errorf("parseNetwork() without a kubeconfig = %+v, error %v; want state %q", got, err, LeftBehind)
	}
	if err := os.WriteFile(filepath.Join(dir, kubeconfigFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := parseNetwork(line); err != nil || got.State != Standing {
		t.Errorf("parseNetwork() with a kubeconfig = %+v, error %v; want state %q", got, err, Standing)
	}
	for _, bad := range []string{"", "gauntlet-x\tme\ttrue\t/dir\timage", "x\ty"} {
		if _, err := parseNetwork(bad); err == nil {
			t.Errorf("parseNetwork(%q) returned no error", bad)
		}
	}
}

func TestExplain(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		want error
	}{
		{"error of docker", &commandError{args: []string{"docker", "ps"}, output: "Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?", err: errors.New("exit status 1")}, ErrEngineDown},
		{"no answer of docker", &commandError{args: []string{"docker", "version"}, err: errors.New("the container engine did not answer within 10s")}, ErrEngineDown},
		{"no permission for the socket", &commandError{output: "permission denied while trying to connect to the Docker daemon socket", err: errors.New("exit status 1")}, errNoPermission},
		{"error of kind", &kindexec.RunError{Command: []string{"docker", "run"}, Output: []byte("Bind for 127.0.0.1:4 failed: port is already allocated."), Inner: errors.New("exit status 125")}, errPortInUse},
		{"not a node image", errors.New(`could not find a log line that matches "x"`), errNoNode},
		{"no subnets", &commandError{output: "could not find an available, non-overlapping IPv4 address pool among the defaults", err: errors.New("exit status 1")}, errNoSubnet},
	} {
		if got := explain(test.err); !errors.Is(got, test.want) {
			t.Errorf("%s: explain() = %v, want %v", test.name, got, test.want)
		}
	}
	unknown := errors.New("something else")
	if got := explain(unknown); !errors.Is(got, unknown) || got.Error() != unknown.Error() {
		t.Errorf("explain() of an unknown error = %v, want the error unchanged", got)
	}
	if explain(nil) != nil {
		t.Error("explain(nil) returned an error")
	}
	long := explain(&kindexec.RunError{Command: []string{"kubeadm", "init"}, Output: []byte(strings.Repeat("x", 5000) + " the end"), Inner: errors.New("exit status 1")})
	if text := long.Error(); len(text) > outputBytesMax+200 || !strings.Contains(text, "kubeadm init: exit status 1") || !strings.HasSuffix(text, " the end") {
		t.Errorf("explain() of an error with a long output has %d bytes, want the command and the end of its output: %s", len(text), text)
	}
}

// fakeDocker sets PATH to a directory in which `docker` is the given shell script.
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
	for _, test := range []struct{ name, requested, has, pulls, want, wantErr string }{
		{name: "requested image", requested: "mine:1", has: "mine:1 " + BuiltImage, want: "mine:1"},
		{name: "built image", has: BuiltImage + " " + ReleasedImage, want: BuiltImage},
		{name: "released image", has: ReleasedImage, want: ReleasedImage},
		{name: "pulled image", pulls: ReleasedImage, want: ReleasedImage},
		{name: "no registry", wantErr: "make node-image"},
		{name: "requested image does not exist", requested: "mine:1", has: BuiltImage, wantErr: "node image mine:1 cannot be pulled"},
	} {
		t.Run(test.name, func(t *testing.T) {
			fakeDocker(t, has)
			t.Setenv("HAS", test.has)
			t.Setenv("PULLS", test.pulls)
			if got, err := ChooseImage(t.Context(), test.requested); got != test.want || !errorHas(err, test.wantErr) {
				t.Errorf("ChooseImage() = %q, error %v; want %q and an error that contains %q", got, err, test.want, test.wantErr)
			}
		})
	}
}

// TestStartWithoutAnEngine checks the errors of Start if the container engine is missing or does
// not work. Start must not create a container or a file.
func TestStartWithoutAnEngine(t *testing.T) {
	for _, test := range []struct{ name, script, want string }{
		{"not installed", "", "there is no container engine: `docker` is not on PATH"},
		{"not running", "echo 'Cannot connect to the Docker daemon at unix:///var/run/docker.sock.' >&2; exit 1", "the container engine does not respond; start it"},
		{"no permission", "echo 'permission denied while trying to connect to the Docker daemon socket' >&2; exit 1", "no permission to use the container engine"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.script == "" {
				t.Setenv("PATH", t.TempDir())
			} else {
				fakeDocker(t, test.script)
			}
			dir := t.TempDir()
			if _, err := Start(t.Context(), Options{Dir: dir, LogDir: dir}); !errorHas(err, test.want) {
				t.Errorf("Start(): error %v, want one that contains %q", err, test.want)
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
				t.Errorf("files left in the directory: %v (error %v), want none", entries, err)
			}
		})
	}
}

// TestRemoveChecksMarkerFile checks that Remove removes a directory only if its marker file names the cluster.
func TestRemoveChecksMarkerFile(t *testing.T) {
	fakeDocker(t, "exit 0")
	for marker, removed := range map[string]bool{"gauntlet-x\n": true, "gauntlet-y\n": false} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, markerFile), []byte(marker), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Remove(t.Context(), Found{Name: "gauntlet-x", Dir: dir}); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) != removed {
			t.Errorf("marker %q: removed %v, want %v (error %v)", marker, !removed, removed, err)
		}
	}
}

func TestPauseImage(t *testing.T) {
	node := &corev1.Node{Status: corev1.NodeStatus{Images: []corev1.ContainerImage{{Names: []string{"x:1"}}, {Names: []string{"y@sha256:1", "registry.k8s.io/pause:3.10"}}}}}
	if got, err := PauseImage(node); got != "registry.k8s.io/pause:3.10" || err != nil {
		t.Errorf("PauseImage() = %q, error %v; want the pause image of the node", got, err)
	}
	if _, err := PauseImage(&corev1.Node{}); !errorHas(err, "has no image registry.k8s.io/pause") {
		t.Errorf("PauseImage() of a node without images: error %v, want one that names the image", err)
	}
}

// errorHas reports whether the text of err contains all wanted texts. An empty want means that err
// must be nil.
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

// TestWithoutImageLists verifies that withoutImageLists removes only the failures of crictl.
func TestWithoutImageLists(t *testing.T) {
	failed := func(command ...string) error {
		return &kindexec.RunError{Command: append([]string{"docker", "exec", "node"}, command...), Inner: errors.New("exit status 127")}
	}
	crictl, journal := failed("crictl", "images"), failed("journalctl")
	for _, test := range []struct {
		name string
		err  error
		want []error // the errors that withoutImageLists keeps
	}{
		{"no error", nil, nil},
		{"crictl on one node", crictl, nil},
		{"crictl on two nodes", kinderrors.NewAggregate([]error{crictl, crictl}), nil},
		{"another command", journal, []error{journal}},
		{"both on two nodes", kinderrors.NewAggregate([]error{
			kinderrors.NewAggregate([]error{crictl, journal}), kinderrors.NewAggregate([]error{journal, crictl}),
		}), []error{journal}},
	} {
		got := withoutImageLists(test.err)
		if (got != nil) != (test.want != nil) {
			t.Errorf("%s: withoutImageLists() = %v, want %v", test.name, got, test.want)
		}
		for _, want := range test.want {
			if got != nil && (!strings.Contains(got.Error(), want.Error()) || strings.Contains(got.Error(), "crictl")) {
				t.Errorf("%s: withoutImageLists() = %v, want only %v", test.name, got, want)
			}
		}
	}
}
