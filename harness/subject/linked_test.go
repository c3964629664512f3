package subject

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// noCluster is a cluster that only returns client configurations.
type noCluster struct{ cluster.Cluster }

func (noCluster) Config(cluster.Role) *rest.Config { return &rest.Config{Host: "http://apiserver"} }

// TestLinked checks replicas that run as goroutines of this process: how each of them ends, and
// when.
func TestLinked(t *testing.T) {
	untilCanceled := func(ctx context.Context, _ *rest.Config, _ []string) error {
		<-ctx.Done()
		return nil
	}
	slow := func(ctx context.Context, _ *rest.Config, _ []string) error {
		<-ctx.Done()
		<-time.After(3 * time.Second) // on the virtual clock
		return nil
	}
	stop := func(i Instance) error { return i.Stop(context.WithoutCancel(t.Context()), time.Second) }
	for _, test := range []struct {
		name  string
		main  Main
		end   func(Instance) error
		want  string
		after time.Duration
	}{
		{"graceful", untilCanceled, stop, "exited with status 0", 0},
		{"slow", slow, stop, "exited with status 0", 3 * time.Second},
		{"killed", slow, func(i Instance) error { return i.Kill(t.Context()) }, "exited with status 0", 3 * time.Second},
		{"error", func(context.Context, *rest.Config, []string) error { return errors.New("lost the lease") }, nil, "exited with an error: lost the lease", 0},
		{"Goexit", func(context.Context, *rest.Config, []string) error { runtime.Goexit(); return nil }, nil, "did not return", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var disconnected atomic.Int32
				launch := Linked{
					Target: Ours, Main: test.main, Cluster: noCluster{}, Settings: Settings{LeaseNamespace: "ns"},
					Route:      func(string, *rest.Config) error { return nil },
					Disconnect: func(string) { disconnected.Add(1) },
				}.Launcher()
				i, err := launch(t.Context(), "subject-0")
				if err != nil {
					t.Fatal(err)
				}
				if line := strings.Join(i.CommandLine(), " "); !strings.HasPrefix(line, "ours --controllers=") || strings.Contains(line, "kubeconfig") {
					t.Errorf("command line %q, want ours and flags without a kubeconfig", line)
				}
				began := time.Now()
				if test.end != nil {
					if err := i.Err(); err != nil {
						t.Errorf("error %v before the end", err)
					}
					if err := test.end(i); err != nil {
						t.Fatal(err)
					}
				}
				<-i.Done()
				if err := i.Err(); err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("ended with %v, want %q", err, test.want)
				}
				if took := time.Since(began); took != test.after {
					t.Errorf("ended after %v, want %v", took, test.after)
				}
				if disconnected.Load() == 0 {
					t.Error("the connections of the replica were not broken")
				}
				if i.Pause(t.Context()) == nil || i.Resume(t.Context()) == nil {
					t.Error("Pause or Resume succeeded, want errors")
				}
			})
		})
	}
}
