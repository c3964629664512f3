package replay

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	restclient "k8s.io/client-go/rest"

	"github.com/kube-gauntlet/gauntlet/faults/inprocess"
	"github.com/kube-gauntlet/gauntlet/harness/virtual/apiserver"
)

// methods maps each API verb to its HTTP method.
var methods = map[string]string{
	"create": http.MethodPost, "update": http.MethodPut, "patch": http.MethodPatch, "delete": http.MethodDelete,
	"deletecollection": http.MethodDelete, "get": http.MethodGet, "list": http.MethodGet, "watch": http.MethodGet,
}

// prepare returns the HTTP request that the replay sends in place of the recorded one.
func (r *replayer) prepare(recorded *Request) (*http.Request, error) {
	target, err := url.ParseRequestURI(recorded.RequestURI)
	if err != nil {
		return nil, err
	}
	sent := &http.Request{
		Method: methods[recorded.Verb], URL: target, RequestURI: recorded.RequestURI, Host: "apiserver",
		Proto: "HTTP/2.0", ProtoMajor: 2, RemoteAddr: "127.0.0.1:1", Body: http.NoBody,
		Header: http.Header{"User-Agent": {recorded.UserAgent}, "Accept": {accept(recorded.answer.Kind)}},
	}
	if recorded.RequestObject == nil {
		return sent, nil
	}
	body, err := r.body(recorded)
	if err != nil {
		return nil, err
	}
	sent.Header.Set("Content-Type", contentType(recorded.Verb, body))
	sent.Body, sent.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return sent, nil
}

// accept returns the Accept header for a kind, such as Table. With this header, the API server
// answers with an object of the kind.
func accept(kind string) string {
	switch kind {
	case "PartialObjectMetadata", "PartialObjectMetadataList":
		return "application/json;as=" + kind + ";v=v1;g=meta.k8s.io"
	case "Table":
		return "application/json;as=Table;v=v1;g=meta.k8s.io"
	}
	return "application/json"
}

// contentType returns the type of a body. An audit log does not contain the type of a patch. The
// recorded clients send JSON patches, which are arrays, and strategic merge patches.
func contentType(verb string, body []byte) string {
	switch {
	case verb != "patch":
		return "application/json"
	case bytes.HasPrefix(body, []byte("[")):
		return string(types.JSONPatchType)
	}
	return string(types.StrategicMergePatchType)
}

// body returns the recorded body with the random choices of kube-apiserver, such as a new object's
// name and addresses. The body also gets the resourceVersions of the replay.
func (r *replayer) body(recorded *Request) ([]byte, error) {
	raw := recorded.RequestObject.Raw
	value, err := decode(raw)
	body, isObject := value.(map[string]any)
	if err != nil || !isObject {
		return raw, err
	}
	if body["apiVersion"] == "meta.k8s.io/__internal" { // so the audit log has DeleteOptions
		body["apiVersion"] = "v1"
	}
	for _, part := range []string{"metadata", "preconditions"} {
		fields, _ := body[part].(map[string]any)
		if version, _ := fields["resourceVersion"].(string); r.moved[version] != "" {
			fields["resourceVersion"] = r.moved[version]
		}
	}
	if details := recorded.ResponseStatus.Details; recorded.Verb == "create" && details != nil && details.Name != "" {
		copyMissing(body, map[string]any{"metadata": map[string]any{"name": details.Name}}, "metadata", "name") // of a refused object
	}
	if recorded.Verb == "create" && recorded.succeeded() {
		answered, err := decode(recorded.ResponseObject.Raw)
		if err != nil {
			return nil, err
		}
		copyMissing(body, answered, "metadata", "name")
		if recorded.Resource() == "services" {
			copyMissing(body, answered, "spec", "clusterIP")
			copyMissing(body, answered, "spec", "clusterIPs")
		}
	}
	return json.Marshal(body)
}

// copyMissing copies a field of the answer to the body, if the body does not have the field.
func copyMissing(body map[string]any, answer any, part, field string) {
	answered, _ := answer.(map[string]any)
	from, _ := answered[part].(map[string]any)
	to, _ := body[part].(map[string]any)
	if to != nil && to[field] == nil && from[field] != nil {
		to[field] = from[field]
	}
}

// uidSource is the source of random bytes from which package uuid makes UIDs. It can also return
// the bytes of a recorded UID.
type uidSource struct{ next []byte }

// repeat makes the next UID the given one.
func (s *uidSource) repeat(uid types.UID) {
	s.next = nil
	if parsed, err := uuid.Parse(string(uid)); err == nil {
		s.next = parsed[:]
	}
}

// Read returns the bytes of the UID to repeat, or random bytes.
func (s *uidSource) Read(p []byte) (int, error) {
	if len(p) != len(s.next) {
		return rand.Read(p)
	}
	n := copy(p, s.next)
	s.next = nil
	return n, nil
}

// servedResources returns the resources that the API server serves, as in [Request.Resource].
func servedResources(server *apiserver.Server) (map[string]bool, error) {
	connection := inprocess.Direct(server.Handler)
	defer connection.Close()
	client, err := discovery.NewDiscoveryClientForConfig(&restclient.Config{Host: "http://apiserver", Transport: connection})
	if err != nil {
		return nil, err
	}
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		return nil, err
	}
	served := map[string]bool{}
	for _, list := range lists {
		group, _, named := strings.Cut(list.GroupVersion, "/")
		if !named {
			group = ""
		}
		for _, resource := range list.APIResources {
			served[strings.Trim(group+"/"+resource.Name, "/")] = true
		}
	}
	return served, nil
}
