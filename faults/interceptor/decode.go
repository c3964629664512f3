package interceptor

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubejson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// encoding is the serialization format of a request body, response body or watch event.
type encoding int

const (
	unknownEncoding encoding = iota
	jsonEncoding
	protobufEncoding
)

// mediaTypes maps each encoding to its content type, such as application/json. The content type
// of a watch stream is the same, possibly with a parameter such as stream=watch.
var mediaTypes = map[encoding]string{
	jsonEncoding:     runtime.ContentTypeJSON,
	protobufEncoding: runtime.ContentTypeProtobuf,
}

// codecs maps each encoding to the serializer for single objects in that encoding.
var codecs = newCodecs()

func newCodecs() map[encoding]runtime.Serializer {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientscheme.AddToScheme(scheme))
	utilruntime.Must(metav1.AddMetaToScheme(scheme))
	return map[encoding]runtime.Serializer{
		jsonEncoding:     kubejson.NewSerializerWithOptions(kubejson.DefaultMetaFactory, scheme, scheme, kubejson.SerializerOptions{}),
		protobufEncoding: protobuf.NewSerializer(scheme, scheme),
	}
}

// encodingOf returns the encoding that a Content-Type header names. It returns unknownEncoding
// for a content type that the interceptor cannot decode.
func encodingOf(contentType string) encoding {
	mediaType, _, _ := strings.Cut(contentType, ";")
	mediaType = strings.TrimSpace(mediaType)
	for known, name := range mediaTypes {
		if strings.EqualFold(mediaType, name) {
			return known
		}
	}
	return unknownEncoding
}

// decode returns the object that is encoded in the argument data, as JSON or protobuf. If
// client-go does not know the kind of a JSON object, the result is an unstructured object. The
// object does not share memory with data.
func decode(in encoding, data []byte) (runtime.Object, error) {
	codec, ok := codecs[in]
	if !ok {
		return nil, fmt.Errorf("the content type is neither JSON nor protobuf")
	}
	obj, _, err := codec.Decode(data, nil, nil)
	if runtime.IsNotRegisteredError(err) && in == jsonEncoding {
		obj, _, err = unstructured.UnstructuredJSONScheme.Decode(data, nil, nil)
	}
	if err != nil {
		return nil, err
	}
	return obj, nil
}

// decodeRequest returns the object in the body of a request. Unlike a response, the body need not contain
// kind and apiVersion. The API server then takes both from the URL.
func (t *target) decodeRequest(in encoding, data []byte) (runtime.Object, error) {
	obj, err := decode(in, data)
	if in != jsonEncoding || !runtime.IsMissingKind(err) && !runtime.IsMissingVersion(err) {
		return obj, err
	}
	if kind, ok := builtInKinds()[t.resource]; ok && history.HasKindOfResource(t.subresource) {
		obj, _, err = codecs[in].Decode(data, &kind, nil)
		return obj, err
	}
	fields := map[string]any{}
	err = json.Unmarshal(data, &fields)
	return &unstructured.Unstructured{Object: fields}, err
}

// builtInKinds maps the name of each resource that client-go knows to its kind. A name contains the API
// group, such as "replicasets.apps".
var builtInKinds = sync.OnceValue(func() map[string]schema.GroupVersionKind {
	kinds := map[string]schema.GroupVersionKind{}
	versions := clientscheme.Scheme.PrioritizedVersionsAllGroups()
	slices.Reverse(versions) // the preferred version comes last, and replaces the others
	for _, version := range versions {
		for kind := range clientscheme.Scheme.KnownTypes(version) {
			plural, _ := meta.UnsafeGuessKindToResource(version.WithKind(kind))
			kinds[plural.GroupResource().String()] = version.WithKind(kind)
		}
	}
	return kinds
})

// project returns the part of an object that the history stores. For resources whose objects can
// contain credentials, such as Secrets, it omits the body and the annotations.
func (t *target) project(obj runtime.Object) (*history.Object, error) {
	object, err := history.Project(t.resource, obj)
	if t.mayHoldCredentials() {
		object.Body, object.Annotations = nil, nil
	}
	if err != nil {
		return nil, err
	}
	object.Skewed = t.skewed
	return &object, nil
}

// readBody decodes a request body and stores the content in the request's history record. The
// content is an object, a patch, or the UID precondition of a delete.
func (t *target) readBody(request *history.Request, contentType string, body []byte) error {
	if t.resource == "" || len(body) == 0 {
		return nil
	}
	switch t.verb {
	case "create", "update":
		obj, err := t.decodeRequest(encodingOf(contentType), body)
		if err != nil {
			return fmt.Errorf("decoding the body of the %s request for %s: %w", t.verb, t.resource, err)
		}
		object, err := t.project(obj)
		if err != nil {
			return err
		}
		if object.Namespace == "" { // the API server then uses the namespace in the path
			object.Namespace = t.namespace
		}
		request.Object = object
		if pod, ok := obj.(*corev1.Pod); ok && t.verb == "create" && t.subresource == "" {
			if request.PodSpec, err = json.Marshal(&pod.Spec); err != nil {
				return fmt.Errorf("encoding the spec of a pod in a create request: %w", err)
			}
		}
	case "patch":
		request.PatchType = contentType
		if !t.mayHoldCredentials() {
			request.Patch = patch(contentType, body)
		}
	case "delete", "deletecollection":
		options, err := deleteOptions(encodingOf(contentType), body)
		if err != nil {
			return fmt.Errorf("decoding the DeleteOptions of the %s request for %s: %w", t.verb, t.resource, err)
		}
		request.BodyDryRun = len(options.DryRun) > 0
		if options.Preconditions != nil && options.Preconditions.UID != nil {
			request.PreconditionUID = *options.Preconditions.UID
		}
	}
	return nil
}

// patch returns the body of a patch request as JSON, because the history stores JSON. It
// converts YAML to JSON. Of a key that occurs twice, it keeps the last value, as the API server does. A body
// in any other format becomes a JSON string.
func patch(contentType string, body []byte) json.RawMessage {
	if strings.Contains(contentType, "yaml") {
		if translated, err := yaml.YAMLToJSON(body); err == nil {
			return translated
		}
	}
	var compact bytes.Buffer
	if json.Compact(&compact, body) == nil {
		if jsontext.Value(compact.Bytes()).IsValid() {
			return compact.Bytes()
		}
		var decoded any
		if json.Unmarshal(body, &decoded) == nil {
			if unique, err := json.Marshal(decoded); err == nil {
				return unique
			}
		}
	}
	if !utf8.Valid(body) {
		body = fmt.Appendf(nil, "%d bytes that are not UTF-8", len(body))
	}
	quoted, _ := json.Marshal(string(body)) // encoding a string never fails
	return quoted
}

// deleteOptions returns the DeleteOptions in the body of a delete request. Like the API server, it
// accepts any API group in the apiVersion of the body.
func deleteOptions(in encoding, body []byte) (*metav1.DeleteOptions, error) {
	options := new(metav1.DeleteOptions)
	switch in {
	case jsonEncoding:
		return options, json.Unmarshal(body, options)
	case protobufEncoding:
		inner, err := unwrap(body)
		if err != nil {
			return nil, err
		}
		return options, options.Unmarshal(inner)
	}
	return nil, fmt.Errorf("the content type is neither JSON nor protobuf")
}

// protobufMagic is the prefix of every object in the protobuf encoding of Kubernetes.
var protobufMagic = []byte("k8s\x00")

// unwrap returns the object inside the protobuf envelope (runtime.Unknown) that Kubernetes uses.
// The returned object is still protobuf-encoded.
func unwrap(data []byte) ([]byte, error) {
	rest, ok := bytes.CutPrefix(data, protobufMagic)
	if !ok {
		return nil, fmt.Errorf("the protobuf data does not begin with %q", protobufMagic)
	}
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(rest); err != nil {
		return nil, err
	}
	return envelope.Raw, nil
}

// responseContent is the decoded body of a response: a Status, a single object or a list. For
// example, the fields object and list are nil if the body is a Status.
type responseContent struct {
	reason string          // reason of a Status
	cause  string          // first cause in the details of a Status
	denied bool            // true if the body is a Status with which the authorizer, such as RBAC, refused the request
	object *history.Object // the object in the response; nil if the body is a Status or a list
	list   *history.List   // the list in the response; nil if the body is a Status or an object
}

// readResponse returns the decoded body of a response, for the history. The result is empty if the
// body is empty, or if the request is a deletecollection. The request must not be a watch.
func (t *target) readResponse(in encoding, body []byte) (responseContent, error) {
	if len(body) == 0 {
		return responseContent{}, nil
	}
	obj, err := decode(in, body)
	if err != nil {
		return responseContent{}, fmt.Errorf("decoding the response to the %s request for %s: %w", t.verb, t.resource, err)
	}
	if status, ok := obj.(*metav1.Status); ok {
		return responseContent{reason: string(status.Reason), cause: firstCause(status), denied: deniedByAuthorizer(status)}, nil
	}
	switch t.verb {
	case "list":
		list, err := t.readList(obj)
		if err != nil {
			return responseContent{}, fmt.Errorf("decoding the response to a list request for %s: %w", t.resource, err)
		}
		return responseContent{list: list}, nil
	case "deletecollection": // the response lists deleted objects, which the history does not need
		return responseContent{}, nil
	}
	object, err := t.project(obj)
	return responseContent{object: object}, err
}

// deniedByAuthorizer reports whether the API server's authorizer, such as RBAC, refused the
// request. Admission control refuses requests with the same reason, Forbidden. Only the message
// differs.
func deniedByAuthorizer(status *metav1.Status) bool {
	return status.Reason == metav1.StatusReasonForbidden && authorizerMessage.MatchString(status.Message)
}

// authorizerMessage matches the message of the API server for a request that its authorizer,
// such as RBAC, refused.
var authorizerMessage = regexp.MustCompile(`is forbidden: User ".*" cannot [a-z]+ resource ".*" in API group ".*"`)

// firstCause returns the type of the first cause in a Status, such as "FieldValueInvalid". The
// history stores it with the reason. firstCause returns "" if the Status has no cause.
func firstCause(status *metav1.Status) string {
	if status.Details == nil || len(status.Details.Causes) == 0 {
		return ""
	}
	return string(status.Details.Causes[0].Type)
}

// readList returns the history record of a decoded list response, with all items.
func (t *target) readList(obj runtime.Object) (*history.List, error) {
	m, err := meta.ListAccessor(obj)
	if err != nil {
		return nil, err
	}
	version, err := history.ParseVersion(m.GetResourceVersion())
	if err != nil {
		return nil, err
	}
	list := &history.List{
		Resource:  t.resource,
		Version:   version,
		Items:     make([]history.Object, 0, meta.LenList(obj)),
		Continued: t.continued,
		More:      m.GetContinue() != "",
	}
	err = meta.EachListItem(obj, func(item runtime.Object) error {
		object, err := t.project(item)
		if err == nil {
			list.Items = append(list.Items, *object)
		}
		return err
	})
	return list, err
}

// readEvent returns the history record of one watch event. The argument frame contains the event's
// bytes in the stream; the bytes of a protobuf event begin with its length.
func (t *target) readEvent(in encoding, frame []byte) (*history.Delivery, error) {
	event, err := decodeEvent(in, frame)
	if err != nil {
		return nil, fmt.Errorf("decoding a watch event of %s: %w", t.resource, err)
	}
	delivery := &history.Delivery{Resource: t.resource, Type: history.EventType(event.Type)}
	switch delivery.Type {
	case history.Error:
		return delivery, nil
	case history.Added, history.Modified, history.Deleted, history.Bookmark:
	default:
		return nil, fmt.Errorf("a watch event of %s has the unknown type %q", t.resource, event.Type)
	}
	obj, err := decode(in, event.Object.Raw)
	if err != nil {
		return nil, fmt.Errorf("decoding the object in a watch event of %s: %w", t.resource, err)
	}
	if delivery.Type == history.Bookmark {
		return delivery, readBookmark(delivery, obj)
	}
	object, err := t.project(obj)
	if err != nil {
		return nil, err
	}
	delivery.Object = *object
	return delivery, nil
}

// readBookmark copies the resourceVersion of a bookmark event to the delivery record. It also
// records whether the bookmark ends the initial events of a streaming list.
func readBookmark(delivery *history.Delivery, obj runtime.Object) error {
	m, err := meta.Accessor(obj)
	if err != nil {
		return fmt.Errorf("decoding a bookmark of %s: %w", delivery.Resource, err)
	}
	version, err := history.ParseVersion(m.GetResourceVersion())
	if err != nil {
		return fmt.Errorf("decoding a bookmark of %s: %w", delivery.Resource, err)
	}
	delivery.Object.Ref = history.Ref{Resource: delivery.Resource, Version: version}
	delivery.InitialEventsEnd = m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
	return nil
}

// encodeEvent returns the bytes of a watch event that the interceptor itself sends, such as a 410
// (Expired) error. The argument obj is the object in the event. The bytes of a protobuf event
// begin with the event's length.
func encodeEvent(in encoding, eventType history.EventType, obj runtime.Object) ([]byte, error) {
	body, err := encode(in, obj)
	if err != nil {
		return nil, fmt.Errorf("encoding a watch event for the subject: %w", err)
	}
	event := metav1.WatchEvent{Type: string(eventType), Object: runtime.RawExtension{Raw: body}}
	if in == jsonEncoding {
		text, err := json.Marshal(event)
		return append(text, '\n'), err
	}
	raw, err := event.Marshal()
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(raw))), raw...), err
}
