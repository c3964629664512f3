package proxy

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kubejson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// encoding is the serialization format of a body.
type encoding int

const (
	unknownEncoding encoding = iota
	jsonEncoding
	protobufEncoding
)

// mediaTypes are the content types of single objects. Watch streams use the same types,
// possibly with a parameter such as stream=watch.
var mediaTypes = map[encoding]string{
	jsonEncoding:     runtime.ContentTypeJSON,
	protobufEncoding: runtime.ContentTypeProtobuf,
}

// codecs decode and encode single objects.
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

// encodingOf returns the encoding that a Content-Type header names.
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

// decode decodes one object. If client-go does not know the kind of a JSON object,
// decode returns an unstructured object. The object does not share memory with data.
func decode(in encoding, data []byte) (runtime.Object, error) {
	codec, ok := codecs[in]
	if !ok {
		return nil, fmt.Errorf("unknown content type")
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

// project returns the part of an object that the history stores. It omits everything
// that may hold a credential.
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

// readBody adds the decoded request body to the record of the request.
func (t *target) readBody(request *history.Request, contentType string, body []byte) error {
	if t.resource == "" || len(body) == 0 {
		return nil
	}
	switch t.verb {
	case "create", "update":
		obj, err := decode(encodingOf(contentType), body)
		if err != nil {
			return fmt.Errorf("body of a %s of %s: %w", t.verb, t.resource, err)
		}
		object, err := t.project(obj)
		if err != nil {
			return err
		}
		if object.Namespace == "" { // the namespace in the path applies
			object.Namespace = t.namespace
		}
		request.Object = object
	case "patch":
		request.PatchType = contentType
		if !t.mayHoldCredentials() {
			request.Patch = patch(contentType, body)
		}
	case "delete", "deletecollection":
		options, err := deleteOptions(encodingOf(contentType), body)
		if err != nil {
			return fmt.Errorf("DeleteOptions of a %s of %s: %w", t.verb, t.resource, err)
		}
		if options.Preconditions != nil && options.Preconditions.UID != nil {
			request.PreconditionUID = *options.Preconditions.UID
		}
	}
	return nil
}

// patch returns a patch as JSON, because the history stores JSON. It converts YAML to
// JSON and stores any other content as a JSON string.
func patch(contentType string, body []byte) json.RawMessage {
	if strings.Contains(contentType, "yaml") {
		if translated, err := yaml.YAMLToJSON(body); err == nil {
			return translated
		}
	}
	var compact bytes.Buffer
	if json.Compact(&compact, body) == nil {
		return compact.Bytes()
	}
	if !utf8.Valid(body) {
		body = fmt.Appendf(nil, "%d bytes that are not UTF-8", len(body))
	}
	quoted, _ := json.Marshal(string(body)) // a string always encodes
	return quoted
}

// deleteOptions decodes the body of a delete. Like the API server, it ignores the API group
// in the body's apiVersion.
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
	return nil, fmt.Errorf("unknown content type")
}

// protobufMagic is the prefix of every object in Kubernetes' protobuf encoding.
var protobufMagic = []byte("k8s\x00")

// unwrap removes the envelope of an object in protobuf.
func unwrap(data []byte) ([]byte, error) {
	rest, ok := bytes.CutPrefix(data, protobufMagic)
	if !ok {
		return nil, fmt.Errorf("found no prefix %q", protobufMagic)
	}
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(rest); err != nil {
		return nil, err
	}
	return envelope.Raw, nil
}

// responseContent is the decoded body of a response.
type responseContent struct {
	reason string
	cause  string
	object *history.Object
	list   *history.List
}

// readResponse decodes the response to a request other than a watch, for the history.
func (t *target) readResponse(in encoding, body []byte) (responseContent, error) {
	if len(body) == 0 {
		return responseContent{}, nil
	}
	obj, err := decode(in, body)
	if err != nil {
		return responseContent{}, fmt.Errorf("response to a %s of %s: %w", t.verb, t.resource, err)
	}
	if status, ok := obj.(*metav1.Status); ok {
		return responseContent{reason: string(status.Reason), cause: firstCause(status)}, nil
	}
	switch t.verb {
	case "list":
		list, err := t.readList(obj)
		if err != nil {
			return responseContent{}, fmt.Errorf("response to a list of %s: %w", t.resource, err)
		}
		return responseContent{list: list}, nil
	case "deletecollection": // the deleted items are not the current state
		return responseContent{}, nil
	}
	object, err := t.project(obj)
	return responseContent{object: object}, err
}

// firstCause returns the type of the first cause in the details of a Status, or "" if
// there is none.
func firstCause(status *metav1.Status) string {
	if status.Details == nil || len(status.Details.Causes) == 0 {
		return ""
	}
	return string(status.Details.Causes[0].Type)
}

// readList decodes a list response into its items and the metadata of the list.
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

// readEvent decodes one frame of a watch stream for the history.
func (t *target) readEvent(in encoding, frame []byte) (*history.Delivery, error) {
	event, err := decodeEvent(in, frame)
	if err != nil {
		return nil, fmt.Errorf("watch event of %s: %w", t.resource, err)
	}
	delivery := &history.Delivery{Resource: t.resource, Type: history.EventType(event.Type)}
	switch delivery.Type {
	case history.Error:
		return delivery, nil
	case history.Added, history.Modified, history.Deleted, history.Bookmark:
	default:
		return nil, fmt.Errorf("watch event of %s: unknown type %q", t.resource, event.Type)
	}
	obj, err := decode(in, event.Object.Raw)
	if err != nil {
		return nil, fmt.Errorf("object of a watch event of %s: %w", t.resource, err)
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

// readBookmark copies the content of a bookmark event to the record of the delivery.
func readBookmark(delivery *history.Delivery, obj runtime.Object) error {
	m, err := meta.Accessor(obj)
	if err != nil {
		return fmt.Errorf("bookmark of %s: %w", delivery.Resource, err)
	}
	version, err := history.ParseVersion(m.GetResourceVersion())
	if err != nil {
		return fmt.Errorf("bookmark of %s: %w", delivery.Resource, err)
	}
	delivery.Object.Ref = history.Ref{Resource: delivery.Resource, Version: version}
	delivery.InitialEventsEnd = m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
	return nil
}

// encodeEvent encodes one frame of a watch stream.
func encodeEvent(in encoding, eventType history.EventType, obj runtime.Object) ([]byte, error) {
	body, err := encode(in, obj)
	if err != nil {
		return nil, fmt.Errorf("encoding a watch event: %w", err)
	}
	event := metav1.WatchEvent{Type: string(eventType), Object: runtime.RawExtension{Raw: body}}
	if in == jsonEncoding {
		text, err := json.Marshal(event)
		return append(text, '\n'), err
	}
	raw, err := event.Marshal()
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(raw))), raw...), err
}
