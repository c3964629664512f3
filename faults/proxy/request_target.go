package proxy

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// target is what a request is about, read off its method and URL alone: the
// conventions of the Kubernetes API's paths, without a list of its resources.
type target struct {
	verb        string
	resource    string // with its group, such as "replicasets.apps"; empty for a path that is no resource
	subresource string
	namespace   string
	name        string
	continued   bool // a further page of a chunked list
	skewed      bool // the times in what is shown of it are moved
}

// requestRef is what the answer to a request of that ID is shown for.
func (t *target) requestRef(request uint64) requestRef { return requestRef{request, t.resource} }

// namespaceSubresources are the subresources of namespaces: only they make the third
// segment of namespaces/x/y a part of the namespace, and not a resource in it.
var namespaceSubresources = []string{"finalize", "status"}

// verbs maps methods to verbs, on a collection and on one object.
var verbs = map[string]struct{ collection, object string }{
	http.MethodGet:    {"list", "get"},
	http.MethodHead:   {"list", "get"},
	http.MethodPost:   {"create", "create"},
	http.MethodPut:    {"update", "update"},
	http.MethodPatch:  {"patch", "patch"},
	http.MethodDelete: {"deletecollection", "delete"},
}

// classify reads a request's target. A path that is no resource (discovery,
// /healthz) has the method as its verb and nothing else.
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

// readQuery completes the verb of a read from its query.
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

// isTrue reads a boolean of the API's options: present is true, unless the
// value denies it.
func isTrue(query url.Values, option string) bool {
	values, present := query[option]
	return present && values[0] != "0" && !strings.EqualFold(values[0], "false")
}

// splitPath cuts /api/VERSION/… and /apis/GROUP/VERSION/… into the group and
// the non-empty list of segments behind the version.
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

// streamSubresources are the subresources whose answers are streams of bytes and no
// objects: they pass through unread.
var streamSubresources = []string{"log", "proxy", "exec", "attach", "portforward"}

// hasObjectBody reports whether the answer is an object, a list or a Status, to be
// read as a whole. So are the errors of watches.
func (t *target) hasObjectBody() bool {
	return t.resource != "" && !slices.Contains(streamSubresources, t.subresource)
}

// mayHoldCredentials reports whether objects of the target can carry credentials, bodies
// and annotations of which no history keeps.
func (t *target) mayHoldCredentials() bool {
	switch t.resource {
	case "secrets", "tokenreviews.authentication.k8s.io":
		return true
	}
	return t.subresource == "token"
}

// fill sets what the target knows of a request.
func (t *target) fill(request *history.Request) {
	request.Verb = t.verb
	request.Resource = t.resource
	request.Subresource = t.subresource
	request.Namespace = t.namespace
	request.Name = t.name
}
