package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-gauntlet/gauntlet/controllers/manager"
)

// kubeControllerManagerArgs contains the flags with which gauntlet starts
// kube-controller-manager. Our command must accept them too.
const kubeControllerManagerArgs = "--kubeconfig=F --controllers=replicationcontroller-controller,replicaset-controller,deployment-controller,endpoints-controller" +
	" --leader-elect=true --leader-elect-lease-duration=15s --leader-elect-renew-deadline=10s --leader-elect-retry-period=2s" +
	" --leader-elect-resource-lock=leases --leader-elect-resource-name=NAME --leader-elect-resource-namespace=kube-system" +
	" --kube-api-qps=500 --kube-api-burst=1000 --kube-api-content-type=application/vnd.kubernetes.protobuf" +
	" --concurrent-rc-syncs=5 --concurrent-replicaset-syncs=5 --concurrent-deployment-syncs=5 --concurrent-endpoint-syncs=5" +
	" --endpoint-updates-batch-period=0s --bind-address=127.0.0.1 --secure-port=10257 --tls-cert-file=C --tls-private-key-file=K" +
	" --authorization-always-allow-paths=/livez,/metrics -v=2"

func TestParseAcceptsKubeControllerManagersFlags(t *testing.T) {
	got, err := parse(strings.Fields(kubeControllerManagerArgs), &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	want := manager.NewOptions()
	want.Kubeconfig = "F"
	want.Controllers = manager.ControllerNames()
	want.KubeAPIQPS, want.KubeAPIBurst = 500, 1000
	want.LeaderElection.ResourceName = "NAME"
	want.Serving = manager.ServingOptions{BindAddress: "127.0.0.1", SecurePort: 10257, CertFile: "C", KeyFile: "K", AllowedPaths: []string{"/livez", "/metrics"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
}

// TestRunReportsErrors checks that an error is a single line that names the flag. Usage errors
// and other failures must have different exit codes.
func TestRunReportsErrors(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "") // outside of a pod there is no in-cluster configuration
	missing := filepath.Join(t.TempDir(), "kubeconfig")
	tests := []struct {
		args string
		code int
		want string
	}{
		{"--no-such-flag", exitUsage, "no-such-flag"},
		{"--kube-api-qps=fast", exitUsage, "--kube-api-qps"},
		{"extra", exitUsage, `unexpected argument "extra"`},
		{"--controllers=replicaset", exitUsage, `unknown controller "replicaset"; expected '*' or one of replicationcontroller-controller`},
		{"--controllers=-replicaset", exitUsage, `unknown controller "-replicaset"`},
		{"--controllers=replicaset-controller,-replicaset-controller", exitUsage, "both enabled and disabled"},
		{"--controllers=-replicaset-controller,replicaset-controller", exitUsage, "both enabled and disabled"},
		{"--concurrent-replicaset-syncs=-1", exitUsage, "--concurrent-replicaset-syncs=-1: must be at least 1"},
		{"--concurrent-rc-syncs=0", exitUsage, "--concurrent-rc-syncs=0"},
		{"--kube-api-qps=0", exitUsage, "--kube-api-qps=0"},
		{"--kube-api-qps=NaN", exitUsage, "--kube-api-qps=NaN: must be a number"},
		{"--kube-api-qps=+Inf", exitUsage, "--kube-api-qps=+Inf: must be a number"},
		{"--kube-api-content-type=text/html", exitUsage, "--kube-api-content-type=text/html: must be one of application/json"},
		{"--kube-api-content-type=", exitUsage, "--kube-api-content-type=: must be one of"},
		{"", exitFailed, "outside a cluster, set --kubeconfig"},
		{"--kube-api-qps=10 --kube-api-burst=0", exitUsage, "--kube-api-burst=0: must be at least 1 with --kube-api-qps=10"},
		{"--leader-elect-renew-deadline=15s", exitUsage, "--leader-elect-renew-deadline=15s: must be less than --leader-elect-lease-duration=15s"},
		{"--leader-elect-retry-period=9s", exitUsage, "--leader-elect-retry-period=9s"},
		{"--leader-elect-resource-lock=endpoints", exitUsage, "must be leases"},
		{"--leader-elect-resource-name=", exitUsage, "--leader-elect-resource-name: must not be empty"},
		{"--secure-port=70000", exitUsage, "--secure-port=70000: must be from 0 to 65535"},
		{"--bind-address=localhost", exitUsage, "--bind-address=localhost: must be an IP address"},
		{"--tls-cert-file=C", exitUsage, "--tls-cert-file=C --tls-private-key-file=: set both flags, or neither of them"},
		{"--min-resync-period=0s", exitUsage, "--min-resync-period=0s"},
		{"--endpoint-updates-batch-period=-1s", exitUsage, "--endpoint-updates-batch-period=-1s"},
		{"--kubeconfig=" + missing, exitFailed, "--kubeconfig=" + missing},
	}
	for _, test := range tests {
		t.Run(test.args, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), strings.Fields(test.args), &stdout, &stderr)
			if code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			line, rest, _ := strings.Cut(stderr.String(), "\n")
			if !strings.HasPrefix(line, manager.Name+": ") || !strings.Contains(line, test.want) || rest != "" {
				t.Errorf("stderr is %q, want one line with %q", stderr.String(), test.want)
			}
			if stdout.Len() > 0 {
				t.Errorf("stdout is %q, want nothing", stdout.String())
			}
		})
	}
}

func TestHelp(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"--help"}, &stdout, &stderr); code != exitOK || stderr.Len() > 0 {
		t.Errorf("exit code %d, stderr %q", code, stderr.String())
	}
	if !strings.Contains(stdout.String(), "--concurrent-rc-syncs int") {
		t.Errorf("stdout is %q", stdout.String())
	}
}
