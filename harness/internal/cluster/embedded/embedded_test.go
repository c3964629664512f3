package embedded

import (
	"context"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/modfile"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

func TestVersionsMatchSetup(t *testing.T) {
	path := filepath.Join("..", "..", "setup", "upstream.mod")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	mod, err := modfile.Parse(path, data, nil)
	if err != nil {
		t.Fatal(err)
	}
	pinned := map[string]string{}
	for _, r := range mod.Require {
		pinned[r.Mod.Path] = r.Mod.Version
	}
	for module, version := range map[string]string{
		"go.etcd.io/etcd/server/v3": EtcdVersion, "k8s.io/kubernetes": KubernetesVersion, "sigs.k8s.io/kwok": KWOKVersion,
	} {
		if pinned[module] != version {
			t.Errorf("version of %s: binaries.go has %s, upstream.mod has %s", module, version, pinned[module])
		}
	}
}

func TestFindBinaries(t *testing.T) {
	programs := []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"}
	complete := fakeBinaries(t, nil)
	if b, err := FindBinaries(complete); err != nil || b.KWOK != filepath.Join(complete, "kwok") {
		t.Errorf("FindBinaries() = %+v, error %v; want paths in %s", b, err, complete)
	}
	for _, name := range programs {
		dir := fakeBinaries(t, nil)
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if _, err := FindBinaries(dir); !errorHas(err, dir, name+": no such file or directory") {
			t.Errorf("FindBinaries() without %s: error %v, want one that names the program and the directory", name, err)
		}
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	if _, err := FindBinaries(""); !errorHas(err, "etcd "+EtcdVersion, "gauntlet setup") {
		t.Errorf("FindBinaries() with an empty cache: error %v, want one that names `gauntlet setup`", err)
	}
}

func TestOptionsAreValidated(t *testing.T) {
	valid := Options{Nodes: 1, Dir: "d", LogDir: "l"}
	if err := valid.validate(); err != nil {
		t.Errorf("validate() of valid options: %v, want no error", err)
	}
	for _, tc := range []struct {
		change func(*Options)
		want   string
	}{
		{func(o *Options) { o.Nodes = 0 }, "0 nodes"},
		{func(o *Options) { o.Nodes = NodesMax + 1 }, "1001 nodes: expected 1 to 1000"},
		{func(o *Options) { o.PodStartDelay = -time.Second }, "pod start delay -1s"},
		{func(o *Options) { o.PodStopDelay = 2 * time.Hour }, "pod stop delay 2h0m0s"},
		{func(o *Options) { o.Dir = "" }, "expected a state directory"},
		{func(o *Options) { o.LogDir = "" }, "expected a state directory"},
		{func(o *Options) { o.Verbosity = 11 }, "verbosity 11"},
	} {
		o := valid
		tc.change(&o)
		if _, err := Start(t.Context(), o); !errorHas(err, tc.want) {
			t.Errorf("Start(%+v): error %v, want one that contains %q", o, err, tc.want)
		}
	}
}

func TestCheckDiskSpace(t *testing.T) {
	dir := t.TempDir()
	if err := checkDiskSpace(dir, 1); err != nil {
		t.Error(err)
	}
	if err := checkDiskSpace(dir, 1<<62); !errorHas(err, "no space left on the disk of "+dir, "MiB required") {
		t.Errorf("checkDiskSpace() with too little free space: error %v, want one with the required space", err)
	}
	if err := checkDiskSpace(filepath.Join(dir, "absent"), 1); !errorHas(err, "absent") {
		t.Errorf("checkDiskSpace() of a missing directory: error %v, want one that names it", err)
	}
}

func TestFreePortsAreDistinct(t *testing.T) {
	p, err := freePorts()
	if err != nil {
		t.Fatal(err)
	}
	all := []int{p.etcd, p.etcdPeer, p.apiServer, p.controllerManager, p.scheduler}
	slices.Sort(all)
	if all[0] == 0 || len(slices.Compact(all)) != 5 {
		t.Errorf("freePorts() = %+v, want 5 distinct ports", p)
	}
}

func TestFilesAndCommandLinesOfComponents(t *testing.T) {
	creds, err := newCredentials(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	l := layout{dir: t.TempDir(), logDir: t.TempDir(), ports: ports{1, 2, 3, 4, 5}}
	if err := l.write(Options{Nodes: 1}, creds); err != nil {
		t.Fatal(err)
	}
	var b Binaries
	components := []component{etcdComponent(l, b), apiServerComponent(l, b, Options{AuditLog: filepath.Join(l.logDir, "audit.jsonl")}), controllerManagerComponent(l, b, Options{}), schedulerComponent(l, b, 0), kwokComponent(l, b)}
	for _, c := range components {
		for _, arg := range c.args {
			_, value, _ := strings.Cut(arg, "=")
			value = strings.Trim(value, `"`) // flags that take a list have a quoted value
			if _, err := os.Stat(value); strings.HasPrefix(value, l.dir) && value != l.file(etcdData) && err != nil {
				t.Errorf("%s %s: %v", c.name, arg, err)
			}
		}
		spec := l.spec(c)
		for role, token := range creds.tokens {
			if strings.Contains(strings.Join(append(spec.Args, spec.Env...), " "), token) {
				t.Errorf("the command line of %s contains the token of role %s", c.name, role)
			}
		}
		if c.stopGrace <= 0 || !slices.Contains(stopOrder, c.stopGroup) {
			t.Errorf("%s: stop grace period %s, stop group %d; want a positive period and a group of stopOrder", c.name, c.stopGrace, c.stopGroup)
		}
	}
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("file mode of %s is %v (error %v), want access only for the owner", entry.Name(), info.Mode(), err)
		}
	}
	for name, role := range map[string]cluster.Role{supportConfig: cluster.Support, kubeletConfig: cluster.Kubelet} {
		config, err := clientcmd.BuildConfigFromFlags("", l.file(name))
		if err != nil || config.BearerToken != creds.tokens[role] {
			t.Errorf("%s does not contain the token of the role %s: %v", name, role, err)
		}
	}
}

// TestControllerManagerOmitsOnlyGivenControllers checks the flag --controllers of
// kube-controller-manager. The flag must disable the controllers under test, and must not disable
// other controllers that a run needs.
func TestControllerManagerOmitsOnlyGivenControllers(t *testing.T) {
	o := Options{Controllers: []kube.Controller{{Name: "statefulset-controller"}, {Name: "endpoints-controller"}}}
	args := strings.Join(controllerManagerComponent(layout{}, Binaries{}, o).args, " ")
	if want := " --controllers=*,-statefulset-controller,-endpoints-controller,-horizontal"; !strings.Contains(args, want) || strings.Contains(args, "-replicaset-controller") {
		t.Errorf("arguments %s; want only the given controllers disabled, as in %s", args, want)
	}
}

func TestControllerManagerOmitsSubjectControllers(t *testing.T) {
	args := strings.Join(controllerManagerComponent(layout{}, Binaries{}, Options{}).args, " ")
	for _, name := range []string{"replicationcontroller", "replicaset", "deployment", "endpoints"} {
		if !strings.Contains(args, ",-"+name+"-controller") {
			t.Errorf("the %s-controller is enabled, want it disabled: %s", name, args)
		}
	}
	for _, name := range []string{"garbage-collector", "namespace", "node-lifecycle", "resourcequota", "endpointslice", "disruption"} {
		if strings.Contains(args, ",-"+name+"-controller") {
			t.Errorf("the %s-controller is disabled, want it enabled: %s", name, args)
		}
	}
}

func TestCredentialsAreUnique(t *testing.T) {
	one, err := newCredentials(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	two, err := newCredentials(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, c := range []*credentials{one, two} {
		for role, token := range c.tokens {
			if len(token) < 20 || seen[token] {
				t.Errorf("the token of role %s is too short or not unique", role)
			}
			seen[token] = true
		}
		for _, data := range [][]byte{c.authorityPEM, c.serving.Certificate, c.serving.Key, c.etcdClient.Certificate, c.etcdClient.Key, c.accountKey, c.accountPub} {
			if block, rest := pem.Decode(data); block == nil || len(rest) != 0 || seen[string(data)] {
				t.Error("a key or certificate is not PEM-encoded or not unique")
			}
			seen[string(data)] = true
		}
	}
}

func TestRenderStages(t *testing.T) {
	data, err := renderStages(Options{PodStartDelay: 1500 * time.Millisecond, PodStopDelay: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	delays := map[string]int{}
	for _, document := range strings.Split(string(data), "\n---\n") {
		var stage struct {
			Kind     string
			Metadata struct{ Name string }
			Spec     struct {
				Delay struct{ DurationMilliseconds int }
			}
		}
		if err := yaml.Unmarshal([]byte(document), &stage); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if stage.Kind == "Stage" {
			delays[stage.Metadata.Name] = stage.Spec.Delay.DurationMilliseconds
		}
	}
	for name, want := range map[string]int{"node-ready": 0, "node-heartbeat": 300000, "pod-start": 1500, "pod-end": 0, "pod-stop": 20} {
		if got, ok := delays[name]; !ok || got != want {
			t.Errorf("stage %s: exists %v, delay %d ms; want delay %d ms", name, ok, got, want)
		}
	}
}

// TestStartRefusesText verifies that Start checks all programs before Start runs etcd. One of the
// programs is a text file, which this machine cannot run.
func TestStartRefusesText(t *testing.T) {
	dir := t.TempDir()
	binaries := fakeBinaries(t, map[string]string{"kube-apiserver": ""})
	_, err := Start(t.Context(), Options{Nodes: 1, Dir: dir, LogDir: filepath.Join(dir, "logs"), BinDir: binaries})
	if !errorHas(err, "kube-apiserver: found neither", "neither an ELF file nor a script") {
		t.Errorf("Start(): error %v, want one that says why kube-apiserver cannot run", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "logs", "etcd.log")); !os.IsNotExist(err) {
		t.Errorf("the log of etcd: error %v, want no such file", err)
	}
}

func TestStartErrors(t *testing.T) {
	for _, tc := range []struct {
		name    string
		scripts map[string]string
		want    []string
		starts  int // expected number of starts of etcd; 0 if it varies
	}{
		{
			name:    "etcd exits",
			scripts: map[string]string{"etcd": "echo started >&2; echo the reason >&2; exit 3"},
			want:    []string{"etcd exited with status 3", "etcd.log", "the reason"}, starts: 1,
		},
		{
			name:    "the API server exits",
			scripts: map[string]string{"kube-apiserver": "echo bad flag; exit 1"},
			want:    []string{"kube-apiserver exited with status 1", "bad flag"},
		},
		{
			name:    "the API server is killed",
			scripts: map[string]string{"kube-apiserver": "kill -KILL $$"},
			want:    []string{"kube-apiserver was terminated by SIGKILL", "fake kube-apiserver"},
		},
		{
			name:    "the ports are always in use",
			scripts: map[string]string{"etcd": "echo 'listen tcp 127.0.0.1:2379: bind: address already in use'; exit 1"},
			want:    []string{"etcd exited with status 1", "address already in use"}, starts: attemptsMax,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			_, err := Start(t.Context(), Options{Nodes: 1, Dir: dir, LogDir: filepath.Join(dir, "logs"), BinDir: fakeBinaries(t, tc.scripts)})
			if !errorHas(err, append(tc.want, "embedded cluster: ")...) {
				t.Errorf("Start(): error %v\nwant one that contains %q", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "waiting for") {
				t.Errorf("Start() reports a timeout instead of the exit of a component: %v", err)
			}
			data, err := os.ReadFile(filepath.Join(dir, "logs", "etcd.log"))
			if got := strings.Count(string(data), "fake etcd"); tc.starts != 0 && got != tc.starts || err != nil {
				t.Errorf("etcd was started %d times (error %v), want %d", got, err, tc.starts)
			}
			assertRemoved(t, filepath.Join(dir, "cluster"))
		})
	}
}

func TestStartStopsWhenContextIsCanceled(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err := Start(ctx, Options{Nodes: 1, Dir: dir, LogDir: filepath.Join(dir, "logs"), BinDir: fakeBinaries(t, nil)})
	if !errorHas(err, "waiting for kube-apiserver", "not ready in time", "connection refused", "fake kube-apiserver") {
		t.Errorf("Start(): error %v, want one about the wait for kube-apiserver", err)
	}
	assertRemoved(t, filepath.Join(dir, "cluster"))
}

func TestStartDoesNotRemoveExistingDirectory(t *testing.T) {
	dir := t.TempDir()
	existing := filepath.Join(dir, "cluster", "content")
	if err := os.MkdirAll(existing, 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Options{Nodes: 1, Dir: dir, LogDir: filepath.Join(dir, "logs"), BinDir: fakeBinaries(t, nil)})
	if !errors.Is(err, os.ErrExist) {
		t.Errorf("Start() with an existing state directory: error %v, want %v", err, os.ErrExist)
	}
	if _, err := os.Stat(existing); err != nil {
		t.Error(err)
	}
}

// fakeBinaries creates a directory with shell scripts that replace the programs. The map scripts
// contains shell commands by program name. Each script prints its name and then runs its commands.
// The script of a program that is not in the map sleeps. If the commands are "", the file is not a
// valid program.
func fakeBinaries(t *testing.T, scripts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"} {
		script, ok := scripts[name]
		if !ok {
			script = "exec /bin/sleep 1000"
		}
		text := "#!/bin/sh\necho fake " + name + "\n" + script + "\n"
		if ok && script == "" {
			text = "not a program"
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func assertRemoved(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s was not removed: error %v, want %v", path, err, os.ErrNotExist)
	}
}

// errorHas reports whether err is not nil and its text contains all wanted texts.
func errorHas(err error, want ...string) bool {
	return err != nil && !slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(err.Error(), w) })
}
