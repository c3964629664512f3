package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/observe"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// Bounds on a look at how a run stands at its end: all of it, and what one replica
// is asked.
const (
	snapshotTimeout   = 15 * time.Second
	debugFetchTimeout = 3 * time.Second
)

// snapshot is how a run stood at its end, before anything was stopped: what helps to
// find out why something went wrong. It is taken of every run, since only the verdict
// says whether it is wanted, and kept of those that failed or have not converged.
type snapshot struct {
	pending []string
	files   []snapshotFile
}

type snapshotFile struct {
	name    string
	content []byte
	objects bool // a list of objects as the API server sent it
}

func (s *snapshot) add(name string, content []byte) {
	s.files = append(s.files, snapshotFile{name: name, content: content})
}

// takeSnapshot takes the snapshot: what is pending, every object of the workload as the API
// server has it, and of each replica its metrics and what each of its goroutines does.
// It comes after all that is judged, so that nothing of it decides anything; what
// cannot be had is said in its place. Secrets are not asked for. Of a run that was
// interrupted, or whose control plane has gone, it is only what is pending: somebody
// waits for its end, or there is nobody to ask. broken is what ended the run, if
// anything did.
func (s *testEnvironment) takeSnapshot(ctx context.Context, broken error) *snapshot {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), snapshotTimeout)
	defer cancel()
	seen := &snapshot{pending: s.monitor.settled.Pending()}
	if len(seen.pending) > 0 {
		s.progress("not converged: %s", seen.pending[0])
		seen.add("pending.txt", []byte(strings.Join(seen.pending, "\n")+"\n"))
	}
	if errors.Is(broken, errInterrupted) || s.cluster.Err() != nil {
		return seen
	}
	if err := s.snapshotObjects(ctx, seen); err != nil {
		seen.add("objects.txt", unavailable(err))
	}
	s.snapshotReplicas(ctx, seen)
	return seen
}

func unavailable(err error) []byte { return fmt.Appendf(nil, "not to be had: %v\n", err) }

// snapshotObjects asks for the objects of the run's namespace, and the events about
// them, and leaves them as they come: most runs have no use for them.
func (s *testEnvironment) snapshotObjects(ctx context.Context, seen *snapshot) error {
	client := s.admin.CoreV1().RESTClient()
	var all []error
	for _, resource := range append([]schema.GroupVersionResource{{Version: "v1", Resource: "events"}}, observe.Resources...) {
		root := "/apis/" + resource.Group
		if resource.Group == "" {
			root = "/api"
		}
		list, err := client.Get().AbsPath(root, resource.Version, "namespaces", namespace, resource.Resource).
			SetHeader("Accept", runtime.ContentTypeJSON).DoRaw(ctx)
		if err != nil {
			all = append(all, fmt.Errorf("listing %s: %w", resource.Resource, err))
			continue
		}
		seen.files = append(seen.files, snapshotFile{name: resource.Resource + ".yaml", content: list, objects: true})
	}
	return errors.Join(all...)
}

// snapshotReplicas asks each replica for its metrics and goroutines. When all have been
// asked, those that could not say what their goroutines do, though something is
// pending, are ended so that their logs say it, if that is a way in which they can be
// ended.
func (s *testEnvironment) snapshotReplicas(ctx context.Context, seen *snapshot) {
	replicas := s.subject.Replicas()
	goroutines := make([][]byte, len(replicas))
	silent := make([]error, len(replicas)) // why there are none of that replica
	for i, replica := range replicas {
		metrics, err := s.fetchDebug(ctx, replica, subject.MetricsPath)
		if err != nil {
			metrics = unavailable(err)
		}
		seen.add(replica+".metrics.txt", metrics)
		goroutines[i], silent[i] = s.fetchDebug(ctx, replica, subject.GoroutinesPath)
	}
	for i, replica := range replicas {
		if err := silent[i]; err != nil {
			if len(seen.pending) > 0 {
				if ended, quit := s.subject.DumpStacks(ctx, replica); ended || quit != nil {
					err = errors.Join(fmt.Errorf("%w; it was ended, so that its log may say", err), quit)
				}
			}
			goroutines[i] = unavailable(err)
		}
		seen.add(replica+".goroutines.txt", goroutines[i])
	}
}

func (s *testEnvironment) fetchDebug(ctx context.Context, replica, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, debugFetchTimeout)
	defer cancel()
	return s.subject.Fetch(ctx, replica, path)
}

// neededFor reports whether the verdict on a run makes its snapshot worth keeping.
func (s *snapshot) neededFor(judged *reports.Run) bool {
	return s != nil && (len(s.pending) > 0 || judged.Verdict == check.Fail)
}

// write leaves the snapshot in a directory that is not there yet.
func (s *snapshot) write(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	var all []error
	for _, file := range s.files {
		content := file.content
		var err error
		if file.objects {
			content, err = toYAML(content)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file.name), content, 0o644)
		}
		all = append(all, err)
	}
	return errors.Join(all...)
}

// toYAML turns a list of objects into what a person reads.
func toYAML(list []byte) ([]byte, error) {
	var objects unstructured.UnstructuredList
	if err := json.Unmarshal(list, &objects); err != nil {
		return nil, err
	}
	for i := range objects.Items {
		objects.Items[i].SetManagedFields(nil)
	}
	return yaml.Marshal(&objects)
}
