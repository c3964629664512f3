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

// encoding is how objects are written on the wire.
type encoding int

const (
	unknownEncoding encoding = iota
	jsonEncoding
	protobufEncoding
)

// mediaTypes are the content types of single objects; streams of watch events
// carry the same ones with a parameter.
var mediaTypes = map[encoding]string{
	jsonEncoding:     runtime.ContentTypeJSON,
	protobufEncoding: runtime.ContentTypeProtobuf,
}

// codecs read and write single objects.
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

// encodingOf reads a content type.
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

// decode reads one object. JSON of a kind that client-go does not have becomes
// unstructured. It keeps nothing of data.
func decode(in encoding, data []byte) (runtime.Object, error) {
	codec, ok := codecs[in]
	if !ok {
		return nil, fmt.Errorf("content of an unknown type")
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

// project returns what the history keeps of an object of the target. Nothing
// that may hold a credential is kept: of a secret only its metadata without the
// annotations, which can repeat the data.
func (t *target) project(obj runtime.Object) (*history.Object, error) {
	var object history.Object
	var err error
	if t.mayHoldCredentials() {
		object, err = projectSecret(t.resource, obj)
	} else {
		object, err = history.Project(t.resource, obj)
	}
	if err != nil {
		return nil, err
	}
	object.Skewed = t.skewed
	return &object, nil
}

func projectSecret(resource string, obj runtime.Object) (history.Object, error) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return history.Object{}, fmt.Errorf("an object of %s: %w", resource, err)
	}
	object, err := history.ProjectMeta(resource, m)
	object.Annotations = nil
	return object, err
}

// readBody completes the record of a request from its body.
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
		if object.Namespace == "" { // the path decides
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
			return fmt.Errorf("options of a %s of %s: %w", t.verb, t.resource, err)
		}
		if options.Preconditions != nil && options.Preconditions.UID != nil {
			request.PreconditionUID = *options.Preconditions.UID
		}
	}
	return nil
}

// patch returns a patch as JSON: itself, or translated from YAML, or as a
// string if it is neither.
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
		body = fmt.Appendf(nil, "%d bytes that are no text", len(body))
	}
	quoted, _ := json.Marshal(string(body)) // a string always encodes
	return quoted
}

// deleteOptions reads the body of a delete without regard to the group that its
// kind claims to be of, as the API server does.
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
	return nil, fmt.Errorf("content of an unknown type")
}

// protobufMagic begins every object in protobuf.
var protobufMagic = []byte("k8s\x00")

// unwrap takes an object in protobuf out of its envelope.
func unwrap(data []byte) ([]byte, error) {
	rest, ok := bytes.CutPrefix(data, protobufMagic)
	if !ok {
		return nil, fmt.Errorf("expected the prefix %q", protobufMagic)
	}
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(rest); err != nil {
		return nil, err
	}
	return envelope.Raw, nil
}

// responseContent is what an API server's answer holds.
type responseContent struct {
	reason string
	cause  string
	object *history.Object
	list   *history.List
}

// readResponse reads the body of an answer to a request that is no watch.
func (t *target) readResponse(in encoding, body []byte) (responseContent, error) {
	if len(body) == 0 {
		return responseContent{}, nil
	}
	obj, err := decode(in, body)
	if err != nil {
		return responseContent{}, fmt.Errorf("answer to a %s of %s: %w", t.verb, t.resource, err)
	}
	if status, ok := obj.(*metav1.Status); ok {
		return responseContent{reason: string(status.Reason), cause: firstCause(status)}, nil
	}
	switch t.verb {
	case "list":
		list, err := t.readList(obj)
		if err != nil {
			return responseContent{}, fmt.Errorf("answer to a list of %s: %w", t.resource, err)
		}
		return responseContent{list: list}, nil
	case "deletecollection": // what it deleted is not the resource's state
		return responseContent{}, nil
	}
	object, err := t.project(obj)
	return responseContent{object: object}, err
}

// firstCause is the first cause that a Status gives, "" if it gives none.
func firstCause(status *metav1.Status) string {
	if status.Details == nil || len(status.Details.Causes) == 0 {
		return ""
	}
	return string(status.Details.Causes[0].Type)
}

// readList reads the content of a list.
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

// readEvent reads one frame of a watch stream.
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

// readBookmark completes a delivery from a bookmark's object.
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

// encodeEvent writes a frame of a watch stream.
func encodeEvent(in encoding, eventType history.EventType, obj runtime.Object) ([]byte, error) {
	body, err := encode(in, obj)
	if err != nil {
		return nil, fmt.Errorf("a watch event: %w", err)
	}
	event := metav1.WatchEvent{Type: string(eventType), Object: runtime.RawExtension{Raw: body}}
	if in == jsonEncoding {
		text, err := json.Marshal(event)
		return append(text, '\n'), err
	}
	raw, err := event.Marshal()
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(raw))), raw...), err
}
