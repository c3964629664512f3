package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// These timeouts limit the collection of diagnostics. snapshotTimeout limits all of takeSnapshot,
// and debugFetchTimeout limits each HTTP request to a replica.
const (
	snapshotTimeout   = 15 * time.Second
	debugFetchTimeout = 3 * time.Second
)

// pendingName is the name of the file in a run's diagnostics that lists what is pending; see
// [snapshot].
const pendingName = "pending.txt"

// snapshot contains diagnostics of a run, such as all objects, in memory. Every run takes a
// snapshot before it stops the controllers under test, because the verdict is not yet known. The
// run writes the snapshot to files only if a check failed or objects did not converge.
type snapshot struct {
	// pending contains one line for each object that has not converged; see [check.Settled]. It also
	// contains a line about the step of the workload whose awaited condition was never met.
	pending []string
	files   []snapshotFile
}

// snapshotFile is one file of a run's diagnostics, such as pods.json. It stays in memory until the
// run knows that the diagnostics are needed.
type snapshotFile struct {
	name    string // a list of objects in JSON has the extension jsonExtension
	content []byte
}

// jsonExtension is the extension of files with lists of objects, until convertDiagnostics converts
// them to YAML.
const jsonExtension = ".json"

// add adds a file with the given name and content to the snapshot. The snapshot keeps the file in
// memory.
func (s *snapshot) add(name string, content []byte) {
	s.files = append(s.files, snapshotFile{name: name, content: content})
}

// takeSnapshot returns diagnostics about the end of a run. These are a list of what has not
// converged, all recorded objects, and each replica's metrics and goroutine stacks. takeSnapshot
// does not read Secrets.
//
// takeSnapshot runs after the last phase, so that its requests cannot change a verdict. The
// argument runErr is the error that aborted the run, or nil.
//
// After an interrupt or a failure of the control plane, the result contains only the list of what
// has not converged. If something else is not available, a file of the snapshot contains the
// reason.
func (s *Session) takeSnapshot(ctx context.Context, runErr error) *snapshot {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), snapshotTimeout)
	defer cancel()
	diagnostics := &snapshot{pending: s.monitor.settled.Pending()}
	if s.unmet != nil {
		diagnostics.pending = append(diagnostics.pending, s.unmet.Error())
	}
	if len(diagnostics.pending) > 0 {
		s.progress("not converged: %s", diagnostics.pending[0])
		diagnostics.add(pendingName, []byte(strings.Join(diagnostics.pending, "\n")+"\n"))
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

// unavailable returns the content of a diagnostics file for which takeSnapshot got an error. The
// content is "not available: ERROR".
func unavailable(err error) []byte { return fmt.Appendf(nil, "not available: %v\n", err) }

// snapshotObjects adds the recorded objects and the Events in the recorded namespace to a
// snapshot, the argument diagnostics. It keeps them as JSON text, because most snapshots are never
// written. convertDiagnostics converts the text to YAML.
func (s *Session) snapshotObjects(ctx context.Context, diagnostics *snapshot) error {
	client := s.Environment.Admin.CoreV1().RESTClient()
	resources := []schema.GroupVersionResource{{Version: "v1", Resource: "events"}}
	for _, kind := range s.Scenario.ObservedKinds() {
		resources = append(resources, kind.GVR)
	}
	lists, errs := make([][]byte, len(resources)), make([]error, len(resources))
	var all sync.WaitGroup
	for i, resource := range resources {
		root := "/apis/" + resource.Group
		if resource.Group == "" {
			root = "/api"
		}
		// The first list of a custom resource takes a second or more.
		all.Go(func() {
			var err error
			lists[i], err = client.Get().AbsPath(root, resource.Version, "namespaces", s.Environment.RecordedNamespace(), resource.Resource).
				SetHeader("Accept", runtime.ContentTypeJSON).DoRaw(ctx)
			if err != nil {
				errs[i] = fmt.Errorf("listing %s: %w", resource.Resource, err)
			}
		})
	}
	all.Wait()
	for i, resource := range resources {
		if errs[i] == nil {
			diagnostics.add(resource.Resource+jsonExtension, lists[i])
		}
	}
	return errors.Join(errs...)
}

// snapshotReplicas adds the metrics and goroutine stacks of each replica to a snapshot, the
// argument diagnostics.
//
// If objects have not converged, it ends each replica that does not return its stacks. Such a
// replica then writes a stack dump to its log. snapshotReplicas ends a replica only after it has
// requested the data of all replicas.
func (s *Session) snapshotReplicas(ctx context.Context, diagnostics *snapshot) {
	if s.Environment.Subject == nil { // the Go program runs the controllers itself
		return
	}
	replicas := s.Environment.Subject.Replicas()
	goroutines := make([][]byte, len(replicas))
	missing := make([]error, len(replicas)) // why the replica's goroutine stacks are missing
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
					err = errors.Join(fmt.Errorf("%w; the run ended the replica %s, and the replica's log contains a stack dump", err, replica), dumpErr)
				}
			}
			goroutines[i] = unavailable(err)
		}
		diagnostics.add(replica+".goroutines.txt", goroutines[i])
	}
}

// fetchDebug sends a GET request for a path, such as subject.MetricsPath, to a replica's debug
// endpoint. It returns the response body.
func (s *Session) fetchDebug(ctx context.Context, replica, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, debugFetchTimeout)
	defer cancel()
	return s.Environment.Subject.Fetch(ctx, replica, path)
}

// neededFor reports whether the run must write the snapshot to files. This is the case if objects
// have not converged, if a step of the workload was never done, or if the verdict is fail. The result is
// false for a nil snapshot, which means that the environment of the run did not start.
func (s *snapshot) neededFor(result *reports.Run) bool {
	return s != nil && (len(s.pending) > 0 || result.Verdict == check.Fail)
}

// finishDiagnostics completes the diagnostics that gauntlet-virtual has written. This program always
// writes them, because it does not know the verdict. If the run needs no diagnostics, as
// [snapshot.neededFor] says, finishDiagnostics removes them.
func (d directory) finishDiagnostics(result *reports.Run) error {
	_, err := os.Stat(filepath.Join(d.diagnostics(), pendingName))
	if err == nil || result.Verdict == check.Fail {
		return convertDiagnostics(d.diagnostics())
	}
	return os.RemoveAll(d.diagnostics())
}

// write writes the diagnostics in the snapshot to files in the directory dir, which it creates.
// Lists of objects stay JSON; see [convertDiagnostics].
func (s *snapshot) write(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	var errs []error
	for _, file := range s.files {
		errs = append(errs, os.WriteFile(filepath.Join(dir, file.name), file.content, 0o644))
	}
	return errors.Join(errs...)
}

// convertDiagnostics converts the lists of objects in a directory of diagnostics from JSON to YAML.
// It replaces each file, for example pods.json by pods.yaml. A file that it cannot convert stays.
func convertDiagnostics(dir string) error {
	files, err := fs.Glob(os.DirFS(dir), "*"+jsonExtension)
	errs := []error{err}
	for _, name := range files {
		file := filepath.Join(dir, name)
		list, err := os.ReadFile(file)
		if err == nil {
			list, err = toYAML(list)
		}
		if err == nil {
			err = os.WriteFile(strings.TrimSuffix(file, jsonExtension)+".yaml", list, 0o644)
		}
		if err == nil {
			err = os.Remove(file)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// toYAML converts a list of objects from JSON to YAML for a diagnostics file. It removes
// metadata.managedFields, which make the file hard to read.
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
