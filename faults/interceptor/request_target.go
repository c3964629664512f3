package interceptor

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// target says what a request asks for, such as "delete pods default/web-1". It contains the verb
// and the object or collection in the URL.
//
// The function classify creates a target by the URL conventions of the Kubernetes API, without a
// list of known resources.
type target struct {
	verb        string
	resource    string // with its API group, such as "replicasets.apps"; empty for paths such as /healthz
	subresource string
	namespace   string
	name        string
	continued   bool // the request asks for the second or a later page of a chunked list
	skewed      bool // a clock-skew fault shifted timestamps in the response; see SkewClock
}

// requestRef returns the ID of a request and the resource that it asks for, such as "pods". With
// both, the interceptor tells a [SkewReporter] which object the subject received with shifted
// timestamps, and in the response to which request. The resource is part of the object's Ref.
func (t *target) requestRef(request uint64) requestRef { return requestRef{request, t.resource} }

// namespaceSubresources are the subresources of a Namespace. In a path namespaces/NAME/pods, by
// contrast, "pods" is a resource in the namespace NAME.
var namespaceSubresources = []string{"finalize", "status"}

// verbs maps each HTTP method to two API verbs: for a collection URL and for an object URL. For
// example, GET is "list" for a collection and "get" for an object.
var verbs = map[string]struct{ collection, object string }{
	http.MethodGet:    {"list", "get"},
	http.MethodHead:   {"list", "get"},
	http.MethodPost:   {"create", "create"},
	http.MethodPut:    {"update", "update"},
	http.MethodPatch:  {"patch", "patch"},
	http.MethodDelete: {"deletecollection", "delete"},
}

// classify returns what a request with the given HTTP method and URL asks for. For a path without
// a resource, such as /healthz, classify sets only the verb: the HTTP method in lower case.
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

// readQuery reads from the query of a GET request whether it is a watch or asks for a later
// page. For a watch it sets the verb to "watch". For the second or a later page of a list it
// sets the field continued.
//
// The argument watched is true if the path has the old form /watch/RESOURCE.
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

// isTrue reports whether a boolean query parameter is true. Like the API server, isTrue treats
// every value except "0" and "false" as true, even an empty value. A missing parameter is false.
func isTrue(query url.Values, option string) bool {
	values, present := query[option]
	return present && values[0] != "0" && !strings.EqualFold(values[0], "false")
}

// splitPath splits a path /api/VERSION/… or /apis/GROUP/VERSION/…. It returns the API group and
// the path segments after the version. The result ok is false for any other path, and for a path
// that ends with the version.
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

// streamSubresources are the subresources whose responses are byte streams, not objects.
// The interceptor forwards these responses without decoding them.
var streamSubresources = []string{"log", "proxy", "exec", "attach", "portforward"}

// hasObjectBody reports whether the response body is an object, a list or a Status. Callers must
// handle a successful watch separately, because its response is a stream of events.
func (t *target) hasObjectBody() bool {
	return t.resource != "" && !slices.Contains(streamSubresources, t.subresource)
}

// mayHoldCredentials reports whether objects of the requested resource can contain
// credentials. The history stores neither the bodies nor the annotations of such objects.
func (t *target) mayHoldCredentials() bool {
	return history.HoldsCredentials(t.resource) || t.subresource == "token"
}

// fill copies the target's verb, resource, subresource, namespace and name to a request record.
func (t *target) fill(request *history.Request) {
	request.Verb = t.verb
	request.Resource = t.resource
	request.Subresource = t.subresource
	request.Namespace = t.namespace
	request.Name = t.name
}
