package proxy

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

// Refusal is an error in the API server's name.
type Refusal struct {
	// Code is the HTTP status, one of [RefusalCodes]. It implies the reason.
	Code int
	// RetryAfterSeconds, if positive, asks the client to wait. client-go then
	// repeats a 429 or 5xx by itself, creates included.
	RetryAfterSeconds int
}

// refusals says what the API server calls each error.
var refusals = map[int]struct {
	reason metav1.StatusReason
	says   string
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

// RefusalCodes are the codes that a [Refusal] may have, in rising order.
func RefusalCodes() []int {
	codes := make([]int, 0, len(refusals))
	for code := range refusals {
		codes = append(codes, code)
	}
	slices.Sort(codes)
	return codes
}

// CanRefuse reports whether code is one of [RefusalCodes].
func CanRefuse(code int) bool {
	_, ok := refusals[code]
	return ok
}

// status is the refusal of a request as the API object that clients expect.
func (r *Refusal) status(request *history.Request) *metav1.Status {
	kind := refusals[r.Code]
	reason, says := kind.reason, kind.says
	if r.Code == http.StatusConflict && request.Verb == "create" {
		reason, says = metav1.StatusReasonAlreadyExists, "already exists"
	}
	name := request.Name
	if name == "" && request.Object != nil {
		name = request.Object.Name
	}
	resource := schema.ParseGroupResource(request.Resource)
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure,
		Message:  fmt.Sprintf("%s %q %s (injected fault)", request.Resource, name, says),
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

// encodeStatus writes a Status in the encoding that the client accepts.
func encodeStatus(accept []string, status *metav1.Status) (contentType string, body []byte, err error) {
	accepted := acceptedEncoding(accept)
	var buffer bytes.Buffer
	if err := codecs[accepted].Encode(status, &buffer); err != nil {
		return "", nil, fmt.Errorf("encoding a Status: %w", err)
	}
	return mediaTypes[accepted], buffer.Bytes(), nil
}

// writeStatus sends a Status that was encoded.
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

// acceptedEncoding picks the first encoding that an Accept header names and
// that the proxy can write; JSON, as the API server does, if it names none.
// Weights are not read: client-go states its preference by order.
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
