package e2eframework

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// TestAdminKubeconfig requires that a suite on an existing cluster gets the user's credentials for
// the chosen context. These may be, for example, a token or an exec plugin. The suite must not get
// credentials of other contexts.
func TestAdminKubeconfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	plugin := &api.ExecConfig{Command: "aws", Args: []string{"eks", "get-token"}, APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: api.IfAvailableExecInteractiveMode}
	err := clientcmd.WriteToFile(api.Config{
		Clusters:       map[string]*api.Cluster{"a": {Server: "https://a", ProxyURL: "http://proxy:3128", InsecureSkipTLSVerify: true}, "b": {Server: "https://b"}},
		AuthInfos:      map[string]*api.AuthInfo{"a": {Exec: plugin, Impersonate: "admin"}, "b": {Token: "t"}},
		Contexts:       map[string]*api.Context{"a": {Cluster: "a", AuthInfo: "a", Namespace: "work"}, "b": {Cluster: "b", AuthInfo: "b"}},
		CurrentContext: "b",
	}, path)
	if err != nil {
		t.Fatal(err)
	}
	for context, want := range map[string]string{"": "https://b", "a": "https://a"} {
		p := NewExisting().WithPath(path).(*provider)
		p.context = context
		config, err := p.adminKubeconfig()
		if err != nil {
			t.Fatal(err)
		}
		p.renameContext(config)
		name := cmp.Or(context, "b") // the expected name of the context
		if len(config.Clusters) != 1 || config.Clusters[name].Server != want || config.CurrentContext != name || p.GetKubectlContext() != name {
			t.Errorf("context %q: %+v; want one cluster at %s", context, config.Clusters, want)
		}
		if context != "a" {
			continue
		}
		user, server := config.AuthInfos["a"], config.Clusters["a"]
		if user.Exec == nil || !slices.Equal(plugin.Args, user.Exec.Args) || user.Impersonate != "admin" || server.ProxyURL == "" || !server.InsecureSkipTLSVerify {
			t.Errorf("the kubeconfig lost settings: user %+v, cluster %+v", user, server)
		}
	}
}

// TestCheckVersion requires that WithVersion accepts a version of the command kind. Suites for the
// framework's own kind provider pass such a version.
func TestCheckVersion(t *testing.T) {
	for version, want := range map[string]string{"": "", "v0.26.0": "", "v1.20.0": "expected v1.20.0"} {
		p := NewEmbedded().WithName("x").WithVersion(version).(interface{ base() *provider }).base()
		if err := p.checkVersion(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("version %q: error %v, want %q", version, err, want)
		}
	}
}
