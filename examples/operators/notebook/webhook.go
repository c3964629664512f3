package main

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"strconv"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// serveWebhooks serves the webhooks for Notebooks until ctx is canceled. The directory contains the
// certificate, tls.crt, and its key, tls.key. The address has the form "IP:PORT".
//
//   - /default completes spec.storage: a plain number such as "2" becomes "2Gi".
//   - /validate rejects Notebooks whose spec.storage is no quantity.
//   - /convert converts Notebooks between v1 and v2, where spec.storage has the name spec.capacity.
func serveWebhooks(ctx context.Context, address, directory string) {
	mux := http.NewServeMux()
	mux.HandleFunc("/default", answer(setDefaults))
	mux.HandleFunc("/validate", answer(validate))
	mux.HandleFunc("/convert", convert)
	server := &http.Server{Addr: address, Handler: mux, BaseContext: func(net.Listener) context.Context { return ctx }}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	err := server.ListenAndServeTLS(filepath.Join(directory, "tls.crt"), filepath.Join(directory, "tls.key"))
	if !errors.Is(err, http.ErrServerClosed) {
		panic(err)
	}
}

// answer returns an HTTP handler for admission requests about Notebooks. The function review
// decides about one Notebook.
func answer(review func(notebook *unstructured.Unstructured) *admissionv1.AdmissionResponse) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var body admissionv1.AdmissionReview
		notebook := &unstructured.Unstructured{}
		err := json.NewDecoder(r.Body).Decode(&body)
		if err == nil && body.Request == nil {
			err = errors.New("found no request in the AdmissionReview")
		}
		if err == nil {
			err = json.Unmarshal(body.Request.Object.Raw, notebook)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body.Response = review(notebook)
		body.Response.UID = body.Request.UID
		body.Request = nil
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(body)
	}
}

// setDefaults adds the unit Gi to spec.storage if it is a plain number.
func setDefaults(notebook *unstructured.Unstructured) *admissionv1.AdmissionResponse {
	size := storage(notebook)
	if _, err := strconv.Atoi(size); err != nil {
		return &admissionv1.AdmissionResponse{Allowed: true}
	}
	patch := admissionv1.PatchTypeJSONPatch
	return &admissionv1.AdmissionResponse{Allowed: true, PatchType: &patch, Patch: must(json.Marshal([]map[string]string{
		{"op": "replace", "path": "/spec/storage", "value": size + "Gi"},
	}))}
}

// validate rejects a Notebook whose spec.storage is neither empty nor a quantity.
func validate(notebook *unstructured.Unstructured) *admissionv1.AdmissionResponse {
	size := storage(notebook)
	if size == "" {
		return &admissionv1.AdmissionResponse{Allowed: true}
	}
	if _, err := resource.ParseQuantity(size); err != nil {
		return &admissionv1.AdmissionResponse{Result: &metav1.Status{
			Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity, Message: "spec.storage: found " + size + "; expected a quantity, such as 1Gi",
		}}
	}
	return &admissionv1.AdmissionResponse{Allowed: true}
}

// fieldNames maps an apiVersion to the name of the field in spec that contains the storage size.
var fieldNames = map[string]string{"example.com/v1": "storage", "example.com/v2": "capacity"}

// conversionReview has those fields of a ConversionReview that the function convert needs.
type conversionReview struct {
	metav1.TypeMeta `json:",inline"`
	Request         *conversionRequest  `json:"request,omitempty"`
	Response        *conversionResponse `json:"response,omitempty"`
}

// conversionRequest has the objects to convert, and the apiVersion to which the webhook converts
// them.
type conversionRequest struct {
	UID               string                      `json:"uid"`
	DesiredAPIVersion string                      `json:"desiredAPIVersion"`
	Objects           []unstructured.Unstructured `json:"objects"`
}

// conversionResponse has the objects in the desired version.
type conversionResponse struct {
	UID     string                      `json:"uid"`
	Objects []unstructured.Unstructured `json:"convertedObjects"`
	Result  metav1.Status               `json:"result"`
}

// convert answers ConversionReviews: it converts Notebooks between v1 and v2.
func convert(w http.ResponseWriter, r *http.Request) {
	var body conversionReview
	err := json.NewDecoder(r.Body).Decode(&body)
	if err == nil && body.Request == nil {
		err = errors.New("found no request in the ConversionReview")
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	version := body.Request.DesiredAPIVersion
	for _, notebook := range body.Request.Objects {
		spec, _ := notebook.Object["spec"].(map[string]any)
		from, to := fieldNames[notebook.GetAPIVersion()], fieldNames[version]
		if size, ok := spec[from]; ok {
			delete(spec, from)
			spec[to] = size
		}
		notebook.SetAPIVersion(version)
	}
	body.Response = &conversionResponse{UID: body.Request.UID, Objects: body.Request.Objects, Result: metav1.Status{Status: metav1.StatusSuccess}}
	body.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}
