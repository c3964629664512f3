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
	"github.com/kube-gauntlet/gauntlet/harness/subject"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// snapshotTimeout bounds the whole snapshot, and debugFetchTimeout one HTTP request to a
// replica.
const (
	snapshotTimeout   = 15 * time.Second
	debugFetchTimeout = 3 * time.Second
)

// snapshot contains diagnostics from the end of a run, before anything is stopped. Every run
// takes a snapshot, because its verdict is not known yet. The run writes the snapshot to a
// directory only if a check failed or the subject did not converge.
type snapshot struct {
	// pending has one line for each difference from the converged state; see [check.Settled].
	pending []string
	files   []snapshotFile
}

// snapshotFile is a file of a snapshot.
type snapshotFile struct {
	name    string
	content []byte
	objects bool // content is a list of objects in JSON, as the API server returned it
}

// add adds a file to the snapshot.
func (s *snapshot) add(name string, content []byte) {
	s.files = append(s.files, snapshotFile{name: name, content: content})
}

// takeSnapshot collects diagnostics: what has not converged, all objects of the workload, and
// metrics and goroutines of each replica. It does not read Secrets.
//
// It runs after the last phase, so it cannot change a verdict. The argument runErr is the error
// that aborted the run, or nil.
//
// If the run was interrupted or the control plane has failed, the snapshot contains only what
// has not converged. For any other data that is not available, it contains the reason.
func (s *Session) takeSnapshot(ctx context.Context, runErr error) *snapshot {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), snapshotTimeout)
	defer cancel()
	diagnostics := &snapshot{pending: s.monitor.settled.Pending()}
	if len(diagnostics.pending) > 0 {
		s.progress("not converged: %s", diagnostics.pending[0])
		diagnostics.add("pending.txt", []byte(strings.Join(diagnostics.pending, "\n")+"\n"))
	}
	if errors.Is(runErr, errInterrupted) || s.Environment.Cluster.Err() != nil {
		return diagnostics
	}
	if err := s.snapshotObjects(ctx, diagnostics); err != nil {
		diagnostics.add("objects.txt", unavailable(err))
	}
	s.snapshotReplicas(ctx, diagnostics)
	return diagnostics
}

// unavailable returns the content of a snapshot file whose data could not be collected: a text
// with the error.
func unavailable(err error) []byte { return fmt.Appendf(nil, "not available: %v\n", err) }

// snapshotObjects adds the observed objects and the events in the namespace of the run. It
// adds the JSON text without decoding it, because most snapshots are never written.
func (s *Session) snapshotObjects(ctx context.Context, diagnostics *snapshot) error {
	client := s.Environment.Admin.CoreV1().RESTClient()
	var errs []error
	resources := []schema.GroupVersionResource{{Version: "v1", Resource: "events"}}
	for _, kind := range s.Scenario.ObservedKinds() {
		resources = append(resources, kind.GVR)
	}
	for _, resource := range resources {
		root := "/apis/" + resource.Group
		if resource.Group == "" {
			root = "/api"
		}
		list, err := client.Get().AbsPath(root, resource.Version, "namespaces", s.Environment.RecordedNamespace(), resource.Resource).
			SetHeader("Accept", runtime.ContentTypeJSON).DoRaw(ctx)
		if err != nil {
			errs = append(errs, fmt.Errorf("listing %s: %w", resource.Resource, err))
			continue
		}
		diagnostics.files = append(diagnostics.files, snapshotFile{name: resource.Resource + ".yaml", content: list, objects: true})
	}
	return errors.Join(errs...)
}

// snapshotReplicas adds the metrics and the goroutines of each replica.
//
// A replica may not return its goroutines. If objects have not converged, snapshotReplicas then
// ends the replica, which writes a stack dump to its log. It does so only after it has asked
// all replicas.
func (s *Session) snapshotReplicas(ctx context.Context, diagnostics *snapshot) {
	if s.Environment.Subject == nil { // the program runs the controllers
		return
	}
	replicas := s.Environment.Subject.Replicas()
	goroutines := make([][]byte, len(replicas))
	missing := make([]error, len(replicas)) // why a replica's goroutines are missing
	for i, replica := range replicas {
		metrics, err := s.fetchDebug(ctx, replica, subject.MetricsPath)
		if err != nil {
			metrics = unavailable(err)
		}
		diagnostics.add(replica+".metrics.txt", metrics)
		goroutines[i], missing[i] = s.fetchDebug(ctx, replica, subject.GoroutinesPath)
	}
	for i, replica := range replicas {
		if err := missing[i]; err != nil {
			if len(diagnostics.pending) > 0 {
				if ended, dumpErr := s.Environment.Subject.DumpStacks(ctx, replica); ended || dumpErr != nil {
					err = errors.Join(fmt.Errorf("%w; the run ended the replica, see its log for a stack dump", err), dumpErr)
				}
			}
			goroutines[i] = unavailable(err)
		}
		diagnostics.add(replica+".goroutines.txt", goroutines[i])
	}
}

// fetchDebug returns the response of a replica to a GET request for a debug path.
func (s *Session) fetchDebug(ctx context.Context, replica, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, debugFetchTimeout)
	defer cancel()
	return s.Environment.Subject.Fetch(ctx, replica, path)
}

// neededFor reports whether the run must write the snapshot. It must if objects have not
// converged, or if the verdict of the run is fail. For a nil snapshot, it returns false.
func (s *snapshot) neededFor(result *reports.Run) bool {
	return s != nil && (len(s.pending) > 0 || result.Verdict == check.Fail)
}

// write creates the directory and writes the files of the snapshot to it.
func (s *snapshot) write(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	var errs []error
	for _, file := range s.files {
		content := file.content
		var err error
		if file.objects {
			content, err = toYAML(content)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file.name), content, 0o644)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// toYAML converts a list of objects from JSON to YAML, without managed fields.
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
