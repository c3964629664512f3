package replay

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Request is one request of a recording, with kube-apiserver's answer.
type Request struct {
	auditv1.Event
	// Line is the request's line in the recording, from 1.
	Line int

	answer   answer
	position position
}

// answer has the fields of a recorded answer that the replay needs, for example to sort the
// requests.
type answer struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name              string    `json:"name"`
		UID               types.UID `json:"uid"`
		ResourceVersion   string    `json:"resourceVersion"`
		DeletionTimestamp string    `json:"deletionTimestamp"`
		GracePeriod       int       `json:"deletionGracePeriodSeconds"`
		Finalizers        []string  `json:"finalizers"`
	} `json:"metadata"`
}

// Recordings returns the paths of the recordings in a directory: the files NAME.jsonl and
// NAME.jsonl.gz.
func Recordings(dir string) ([]string, error) {
	plain, err := fs.Glob(os.DirFS(dir), "*.jsonl")
	compressed, gzErr := fs.Glob(os.DirFS(dir), "*.jsonl.gz")
	all := append(plain, compressed...)
	for i, name := range all {
		all[i] = filepath.Join(dir, name)
	}
	if len(all) == 0 && err == nil && gzErr == nil {
		return nil, fmt.Errorf("directory %s: found no *.jsonl and no *.jsonl.gz; `gauntlet run --audit-dir=%s` writes recordings", dir, dir)
	}
	slices.Sort(all)
	return all, errors.Join(err, gzErr)
}

// Read reads a recording: kube-apiserver's audit log of the level RequestResponse. A watch has two
// lines in the log, for its start and its end. Read returns the first one.
func Read(path string) ([]*Request, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var content io.Reader = file
	if strings.HasSuffix(path, ".gz") {
		if content, err = gzip.NewReader(file); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	lines := bufio.NewReaderSize(content, 1<<20)
	var requests []*Request
	seen := map[types.UID]bool{}
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return requests, nil // a killed kube-apiserver may have written a part of the last line
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		r := &Request{Line: number}
		if err := r.decode(line); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, number, err)
		}
		if !seen[r.AuditID] {
			requests = append(requests, r)
		}
		seen[r.AuditID] = true
	}
}

// decode reads one line of an audit log.
func (r *Request) decode(line []byte) error {
	if err := json.Unmarshal(line, &r.Event); err != nil {
		return err
	}
	if r.ObjectRef == nil || r.ResponseStatus == nil {
		return errors.New("found a line without objectRef or responseStatus; expected kube-apiserver's audit log of the level RequestResponse")
	}
	if r.ResponseObject == nil {
		return nil
	}
	return json.Unmarshal(r.ResponseObject.Raw, &r.answer)
}

// Resource returns the group and the resource, such as "apps/replicasets/status" or "pods".
func (r *Request) Resource() string {
	return strings.Trim(r.ObjectRef.APIGroup+"/"+r.ObjectRef.Resource+"/"+r.ObjectRef.Subresource, "/")
}

// Code returns the HTTP status of kube-apiserver's answer.
func (r *Request) Code() int { return int(r.ResponseStatus.Code) }

// object identifies an object by group, resource, namespace and name. It is a key of maps.
type object struct{ group, resource, namespace, name string }

// object returns the object that the request is about. For a list, the name is empty.
func (r *Request) object() object {
	o := object{r.ObjectRef.APIGroup, r.ObjectRef.Resource, r.ObjectRef.Namespace, r.ObjectRef.Name}
	if o.name == "" && !strings.HasSuffix(r.answer.Kind, "List") {
		o.name = r.answer.Metadata.Name // a generated name
	}
	if o.resource == "namespaces" {
		o.namespace = "" // the audit log has the name here, except for a create
	}
	return o
}

// received and completed return the times at which kube-apiserver received and answered the request.
func (r *Request) received() time.Time  { return r.RequestReceivedTimestamp.Time }
func (r *Request) completed() time.Time { return r.StageTimestamp.Time }

// isWrite reports whether the request is of a kind that can change an object.
func (r *Request) isWrite() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb)
}

// succeeded reports whether kube-apiserver answered with a status of 2xx.
func (r *Request) succeeded() bool { return r.Code()/100 == http.StatusOK/100 }

// isDryRun reports whether the request asks the API server to commit nothing.
func (r *Request) isDryRun() bool { return strings.Contains(r.RequestURI, "dryRun=All") }

// isApply reports whether the request is a server-side apply. Its patch contains the type of the
// object, which other patches of the recorded clients do not contain.
func (r *Request) isApply() bool {
	var patch metav1.TypeMeta
	return r.Verb == "patch" && r.RequestObject != nil && json.Unmarshal(r.RequestObject.Raw, &patch) == nil && patch.Kind != "" && patch.APIVersion != ""
}

// version returns the resourceVersion of the answer, or 0 if the answer has none.
func (r *Request) version() int64 {
	version, err := strconv.ParseInt(r.answer.Metadata.ResourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return version
}

// canCommit reports whether the request may have changed an object.
func (r *Request) canCommit() bool {
	return r.isWrite() && r.succeeded() && !r.isDryRun() && !r.lostRace()
}

// lostRace reports whether two requests deleted the object at the same time, and the other request
// committed the deletion. The answer to this request then has no resourceVersion.
func (r *Request) lostRace() bool {
	return r.Verb == "delete" && r.succeeded() && r.answer.Kind != "Status" && r.version() == 0
}

// removesFinalizer reports whether the request removed the last finalizer of a deleted object. The API
// server then removes the object from etcd, and answers with the resourceVersion of an earlier
// commit.
func (r *Request) removesFinalizer() bool {
	m := r.answer.Metadata
	return (r.Verb == "update" || r.Verb == "patch") && m.DeletionTimestamp != "" && m.GracePeriod == 0 && len(m.Finalizers) == 0
}

// commitVersion returns the revision that the request committed, and for a deletecollection the
// lowest one. It returns 0 if the request committed nothing, or if the answer does not contain the
// revision.
func (r *Request) commitVersion() int64 {
	switch {
	case !r.canCommit() || r.removesFinalizer():
		return 0
	case r.Verb == "deletecollection": // the list has an earlier version; each object has that of its commit
		lowest := int64(0)
		for _, item := range items(r.ResponseObject.Raw) {
			if version, err := strconv.ParseInt(item.Metadata.ResourceVersion, 10, 64); err == nil && (lowest == 0 || version < lowest) {
				lowest = version
			}
		}
		return lowest
	}
	return r.version()
}

// endsGracePeriod reports whether the request deletes an object at once. If the object is terminating,
// the API server first commits a grace period of 0, and then the deletion.
func (r *Request) endsGracePeriod() bool {
	var options struct{ GracePeriodSeconds *int64 }
	return r.Verb == "delete" && r.RequestObject != nil && json.Unmarshal(r.RequestObject.Raw, &options) == nil &&
		options.GracePeriodSeconds != nil && *options.GracePeriodSeconds == 0
}
