package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/observe"
)

// diagnoseWithin bounds the time that a look at what went wrong may take.
const diagnoseWithin = 15 * time.Second

// diagnose leaves in the run directory what helps to find out why a run has not
// converged: what is pending, every object of the workload as the API server has
// it, and, in the logs of the replicas, what each of their goroutines does, which
// ends them. It comes after all that is judged, so that nothing of it decides
// anything; what cannot be had is said on the way. Secrets are not asked for.
func (s *stage) diagnose(ctx context.Context) {
	pending := s.monitor.settled.Pending()
	if len(pending) == 0 {
		return
	}
	s.progress("not converged: %s", pending[0])
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), diagnoseWithin)
	defer cancel()
	err := os.Mkdir(s.dir.diagnostics(), 0o755)
	if err == nil {
		err = errors.Join(
			os.WriteFile(filepath.Join(s.dir.diagnostics(), "pending.txt"), []byte(strings.Join(pending, "\n")+"\n"), 0o644),
			s.dumpObjects(ctx),
			s.dumpGoroutines(ctx),
		)
	}
	if err != nil {
		s.progress("diagnosing: %v", err)
	}
}

// dumpObjects writes the objects of the run's namespace, and the events about
// them, a file a resource.
func (s *stage) dumpObjects(ctx context.Context) error {
	client, err := dynamic.NewForConfig(s.cluster.Config(cluster.Admin))
	if err != nil {
		return err
	}
	var all []error
	for _, resource := range append([]schema.GroupVersionResource{{Version: "v1", Resource: "events"}}, observe.Resources...) {
		list, err := client.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			all = append(all, fmt.Errorf("listing %s: %w", resource.Resource, err))
			continue
		}
		for i := range list.Items {
			list.Items[i].SetManagedFields(nil)
		}
		encoded, err := yaml.Marshal(list)
		if err == nil {
			err = os.WriteFile(filepath.Join(s.dir.diagnostics(), resource.Resource+".yaml"), encoded, 0o644)
		}
		all = append(all, err)
	}
	return errors.Join(all...)
}

// dumpGoroutines ends every replica so that it says in its log what it was doing.
func (s *stage) dumpGoroutines(ctx context.Context) error {
	var all []error
	for _, replica := range s.subject.Replicas() {
		_, err := s.subject.Quit(ctx, replica)
		all = append(all, err)
	}
	return errors.Join(all...)
}
