package proxy

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// target is the API object or collection that a request is about. It is parsed from the
// method and the URL by the conventions of the Kubernetes API, without a list of resources.
type target struct {
	verb        string
	resource    string // with its API group, such as "replicasets.apps"; empty for a non-resource path
	subresource string
	namespace   string
	name        string
	continued   bool // a later page of a chunked list
	skewed      bool // the subject receives shifted timestamps, see SkewClock
}

// requestRef returns the reference that a clock skew reports with an object.
func (t *target) requestRef(request uint64) requestRef { return requestRef{request, t.resource} }

// namespaceSubresources are the subresources of a Namespace. Any other third segment of
// namespaces/x/y is a resource in the namespace.
var namespaceSubresources = []string{"finalize", "status"}

// verbs maps an HTTP method to the API verbs for a collection and for a single object.
var verbs = map[string]struct{ collection, object string }{
	http.MethodGet:    {"list", "get"},
	http.MethodHead:   {"list", "get"},
	http.MethodPost:   {"create", "create"},
	http.MethodPut:    {"update", "update"},
	http.MethodPatch:  {"patch", "patch"},
	http.MethodDelete: {"deletecollection", "delete"},
}

// classify parses the target of a request. For a non-resource path (discovery, /healthz) it
// sets only the verb, which is the HTTP method in lower case.
func classify(method string, u *url.URL) target {
	plain := target{verb: strings.ToLower(method)}
	known, ok := verbs[method]
	if !ok {
		return plain
	}
	group, segments, ok := splitPath(u.Path)
	if !ok {
		return plain
	}
	watched := segments[0] == "watch" && len(segments) > 1
	if watched {
		segments = segments[1:]
	}
	t := target{}
	if segments[0] == "namespaces" && len(segments) > 2 && !slices.Contains(namespaceSubresources, segments[2]) {
		t.namespace, segments = segments[1], segments[2:]
	}
	t.resource = segments[0]
	if group != "" {
		t.resource += "." + group
	}
	t.verb = known.collection
	if len(segments) > 1 {
		t.verb, t.name = known.object, segments[1]
	}
	if len(segments) > 2 {
		t.subresource = segments[2]
	}
	t.readQuery(u, watched)
	return t
}

// readQuery sets the verb watch, and marks a later page of a chunked list.
func (t *target) readQuery(u *url.URL, watched bool) {
	if t.verb != "list" && !(t.verb == "get" && watched) {
		return
	}
	query := u.Query()
	switch {
	case watched || isTrue(query, "watch"):
		t.verb = "watch"
	default:
		t.continued = query.Get("continue") != ""
	}
}

// isTrue parses a boolean query parameter like the API server: it is true if present, except
// for "0" and "false".
func isTrue(query url.Values, option string) bool {
	values, present := query[option]
	return present && values[0] != "0" && !strings.EqualFold(values[0], "false")
}

// splitPath returns the API group of a path and the path segments after the version.
// It accepts /api/VERSION/… and /apis/GROUP/VERSION/… with at least one segment after
// the version.
func splitPath(path string) (group string, segments []string, ok bool) {
	segments = strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case slices.Contains(segments, ""):
		return "", nil, false
	case segments[0] == "api" && len(segments) > 2:
		return "", segments[2:], true
	case segments[0] == "apis" && len(segments) > 3:
		return segments[1], segments[3:], true
	}
	return "", nil, false
}

// streamSubresources are the subresources whose responses are byte streams. The proxy
// forwards them without decoding.
var streamSubresources = []string{"log", "proxy", "exec", "attach", "portforward"}

// hasObjectBody reports whether the response contains an object, a list or a Status.
// For a watch, only an error response contains one.
func (t *target) hasObjectBody() bool {
	return t.resource != "" && !slices.Contains(streamSubresources, t.subresource)
}

// mayHoldCredentials reports whether objects of the target can contain credentials. The
// history stores neither their bodies nor their annotations.
func (t *target) mayHoldCredentials() bool {
	return history.HoldsCredentials(t.resource) || t.subresource == "token"
}

// fill copies the target into the record of a request.
func (t *target) fill(request *history.Request) {
	request.Verb = t.verb
	request.Resource = t.resource
	request.Subresource = t.subresource
	request.Namespace = t.namespace
	request.Name = t.name
}
