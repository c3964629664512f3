package interceptor

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Refusal is an API error that the interceptor sends in place of the API server. It answers a
// request of the controllers under test.
type Refusal struct {
	// Code is the HTTP status, one of [RefusalCodes]. It determines the reason in the Status
	// object, such as Conflict for 409.
	Code int
	// RetryAfterSeconds is the value of the Retry-After header; 0 means no header. If a 429 or
	// 5xx response has the header, client-go itself repeats the request, even a create.
	RetryAfterSeconds int
}

// refusals maps each HTTP status that the interceptor can send to the reason and message of its
// Status object.
var refusals = map[int]struct {
	reason  metav1.StatusReason
	message string
}{
	http.StatusForbidden:           {metav1.StatusReasonForbidden, "is forbidden"},
	http.StatusNotFound:            {metav1.StatusReasonNotFound, "not found"},
	http.StatusConflict:            {metav1.StatusReasonConflict, "cannot be written: the object has been modified"},
	http.StatusUnprocessableEntity: {metav1.StatusReasonInvalid, "is invalid"},
	http.StatusTooManyRequests:     {metav1.StatusReasonTooManyRequests, "cannot be served: too many requests"},
	http.StatusInternalServerError: {metav1.StatusReasonInternalError, "cannot be served: internal error"},
	http.StatusServiceUnavailable:  {metav1.StatusReasonServiceUnavailable, "cannot be served: the server is unable to handle the request"},
	http.StatusGatewayTimeout:      {metav1.StatusReasonTimeout, "cannot be served: the request did not complete in time"},
}

// RefusalCodes returns the HTTP statuses that a [Refusal] can have, in ascending order.
func RefusalCodes() []int {
	codes := make([]int, 0, len(refusals))
	for code := range refusals {
		codes = append(codes, code)
	}
	slices.Sort(codes)
	return codes
}

// CanRefuse reports whether a fault can refuse a request with this HTTP status. [RefusalCodes]
// lists the possible values.
func CanRefuse(code int) bool {
	_, ok := refusals[code]
	return ok
}

// status returns the Status object with which the interceptor refuses the given request.
func (r *Refusal) status(request *history.Request) *metav1.Status {
	known := refusals[r.Code]
	reason, message := known.reason, known.message
	if r.Code == http.StatusConflict && request.Verb == "create" {
		reason, message = metav1.StatusReasonAlreadyExists, "already exists"
	}
	name := request.Name
	if name == "" && request.Object != nil {
		name = request.Object.Name
	}
	resource := schema.ParseGroupResource(request.Resource)
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure,
		Message:  fmt.Sprintf("%s %q %s (injected fault)", request.Resource, name, message),
		Reason:   reason,
		Details: &metav1.StatusDetails{
			Name:              name,
			Group:             resource.Group,
			Kind:              resource.Resource,
			RetryAfterSeconds: int32(r.RetryAfterSeconds),
		},
		Code: int32(r.Code),
	}
}

// encodeStatus returns a Status in JSON or protobuf, and its content type. The encoding depends on
// the client's Accept headers, which are in the argument accept.
func encodeStatus(accept []string, status *metav1.Status) (contentType string, body []byte, err error) {
	accepted := acceptedEncoding(accept)
	var buffer bytes.Buffer
	if err := codecs[accepted].Encode(status, &buffer); err != nil {
		return "", nil, fmt.Errorf("encoding the Status %d (%s) that refuses a request: %w", status.Code, status.Message, err)
	}
	return mediaTypes[accepted], buffer.Bytes(), nil
}

// writeStatus writes a complete HTTP response whose body is an encoded Status. The argument status
// provides the HTTP code and the Retry-After header.
func writeStatus(w http.ResponseWriter, contentType string, body []byte, status *metav1.Status) error {
	header := w.Header()
	header.Set("Content-Type", contentType)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	header.Set("Cache-Control", "no-cache, private")
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		header.Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	w.WriteHeader(int(status.Code))
	_, err := w.Write(body)
	return err
}

// acceptedEncoding returns the encoding for a response to a request with the given Accept headers.
// The first clause that names JSON, protobuf or a wildcard decides. A wildcard means JSON, and so
// do headers without such a clause.
//
// The function ignores weights (q=), because client-go lists the preferred encoding first.
func acceptedEncoding(accept []string) encoding {
	for _, header := range accept {
		for clause := range strings.SplitSeq(header, ",") {
			mediaType, _, err := mime.ParseMediaType(clause)
			if err != nil {
				continue
			}
			if found := encodingOf(mediaType); found != unknownEncoding {
				return found
			}
			if mediaType == "*/*" || mediaType == "application/*" {
				return jsonEncoding
			}
		}
	}
	return jsonEncoding
}
