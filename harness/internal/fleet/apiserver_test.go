package fleet

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/embedded/embeddedtest"
)

// apiServer is a real API server, to which a test sends manifests in dry runs.
type apiServer struct {
	*testing.T
	client   dynamic.Interface
	mu       sync.Mutex
	warnings []string // the warnings that the API server has sent
}

// HandleWarningHeader records a warning of the API server.
func (s *apiServer) HandleWarningHeader(_ int, _, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.warnings = append(s.warnings, text)
}

const restricted = "restricted" // a namespace, and the Pod Security Standard that it enforces

// startAPIServer starts a control plane. It creates a namespace, and what the manifests refer to.
func startAPIServer(t *testing.T) *apiServer {
	t.Helper()
	c := embeddedtest.Start(t)
	s := &apiServer{T: t}
	config := rest.CopyConfig(c.Config(cluster.Admin))
	config.WarningHandler = s
	admin := kubernetes.NewForConfigOrDie(config)
	options := metav1.CreateOptions{}
	_, err1 := admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: restricted, Labels: map[string]string{"pod-security.kubernetes.io/enforce": restricted, "pod-security.kubernetes.io/warn": restricted},
	}}, options)
	_, err2 := admin.SchedulingV1().PriorityClasses().Create(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "low"}, Value: 1}, options)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"default", "fleet", "nightly"} {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := admin.CoreV1().ServiceAccounts(restricted).Create(t.Context(), account, options); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	s.client = dynamic.NewForConfigOrDie(config)
	return s
}

// create sends an object to the API server in a dry run. It returns the API server's error, or its
// warnings as an error.
func (s *apiServer) create(object *unstructured.Unstructured) error {
	resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	object = object.DeepCopy()
	object.SetNamespace(restricted)
	if object.GetName() != "" {
		object.SetName(object.GetName() + "-dry-run") // the ServiceAccount exists
	}
	s.warnings = nil
	_, err := s.client.Resource(resource).Namespace(restricted).Create(s.Context(), object, metav1.CreateOptions{
		DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict,
	})
	if len(s.warnings) > 0 {
		err = errors.Join(err, errors.New("warnings: "+strings.Join(s.warnings, "; ")))
	}
	return err
}

// podOf returns the pod that the API server would get from a controller for a Job or a CronJob. It
// returns nil for another object. Only pods must satisfy the Pod Security Standard.
func podOf(object *unstructured.Unstructured) *unstructured.Unstructured {
	for _, path := range [][]string{{"spec", "template"}, {"spec", "jobTemplate", "spec", "template"}} {
		if template, found, err := unstructured.NestedMap(object.Object, path...); found && err == nil {
			pod := &unstructured.Unstructured{Object: template}
			pod.SetAPIVersion("v1")
			pod.SetKind("Pod")
			pod.SetGenerateName("pod-")
			return pod
		}
	}
	return nil
}

// manifests decodes the documents of a YAML file.
func manifests(t *testing.T, content []byte) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096); ; {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, object)
	}
}

// TestAPIServer sends every manifest of a fleet to a real API server, in dry runs with strict field
// validation. The namespace enforces the Pod Security Standard "restricted". A PodMonitor is not sent,
// because its CustomResourceDefinition belongs to the Prometheus operator.
func TestAPIServer(t *testing.T) {
	server := startAPIServer(t)
	var files []string
	for _, pattern := range []string{"testdata/*.yaml", examples + "/*/job.yaml", examples + "/nightly/nightly.yaml"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: files %q, %v; want some", pattern, found, err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range manifests(t, content) {
			if object.GetKind() == "PodMonitor" {
				continue
			}
			if err := server.create(object); err != nil {
				t.Errorf("%s: %s %s: %v", file, object.GetKind(), object.GetName(), err)
			}
			pod := podOf(object)
			if pod == nil {
				continue
			}
			if err := server.create(pod); err != nil {
				t.Errorf("%s: pod of %s %s: %v", file, object.GetKind(), object.GetName(), err)
			}
		}
	}
	server.testRefused()
}

// testRefused checks that the API server would refuse a wrong field, and a pod with a privilege.
func (s *apiServer) testRefused() {
	s.Helper()
	job, err := os.ReadFile("testdata/job.yaml")
	if err != nil {
		s.Fatal(err)
	}
	misspelled := strings.Replace(string(job), "backoffLimitPerIndex", "backoffLimitPerIndexes", 1)
	if err := s.create(manifests(s.T, []byte(misspelled))[0]); err == nil || !strings.Contains(err.Error(), `unknown field "spec.backoffLimitPerIndexes"`) {
		s.Errorf("job with a wrong field: error %v; want one", err)
	}
	privileged := strings.Replace(string(job), "allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true", 1)
	if err := s.create(podOf(manifests(s.T, []byte(privileged))[0])); err == nil || !strings.Contains(err.Error(), "violates PodSecurity") {
		s.Errorf("pod with a privilege: error %v; want one", err)
	}
}
