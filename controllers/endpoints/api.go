package endpoints

import corev1 "k8s.io/api/core/v1"

// These aliases are the types of the v1 Endpoints API. This API is deprecated in favor of
// EndpointSlices, but clusters still serve it. With the aliases, only this file names the
// deprecated types.
type (
	endpoints = corev1.Endpoints       //nolint:staticcheck // deprecated API
	subset    = corev1.EndpointSubset  //nolint:staticcheck // deprecated API
	address   = corev1.EndpointAddress //nolint:staticcheck // deprecated API
	port      = corev1.EndpointPort
)

const (
	// resource is the resource name of Endpoints.
	resource = "endpoints"
	// EventSource is the source component in the events that the controller emits. It is also
	// the value of managedByLabel.
	EventSource = "endpoint-controller"
	// managedByLabel is a label of Endpoints. Its value is the name of the controller that manages
	// the object.
	managedByLabel = "endpoints.kubernetes.io/managed-by"
	// truncatedValue is the value of the annotation endpoints.kubernetes.io/over-capacity. The
	// controller sets the annotation if an Endpoints object does not contain all addresses.
	truncatedValue = "truncated"
	// Capacity is the maximum number of addresses in an Endpoints object. An address in several
	// subsets counts once for each subset.
	Capacity = 1000
)

// These are the reasons of the events that this package emits.
const (
	FailedToCreateEndpoint = "FailedToCreateEndpoint"
	FailedToUpdateEndpoint = "FailedToUpdateEndpoint"
)
