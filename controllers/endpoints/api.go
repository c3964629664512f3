package endpoints

import corev1 "k8s.io/api/core/v1"

// The v1 Endpoints API is deprecated in favor of EndpointSlices, but clusters still serve it.
// Only this file names the deprecated types.
type (
	endpoints = corev1.Endpoints       //nolint:staticcheck // deprecated API
	subset    = corev1.EndpointSubset  //nolint:staticcheck // deprecated API
	address   = corev1.EndpointAddress //nolint:staticcheck // deprecated API
	port      = corev1.EndpointPort
)

const (
	// resource is the resource name of Endpoints, for package ownwrites.
	resource = "endpoints"
	// EventSource is the source component of the controller's events, and the value of
	// managedByLabel.
	EventSource = "endpoint-controller"
	// managedByLabel is the label whose value is the controller that manages an Endpoints
	// object.
	managedByLabel = "endpoints.kubernetes.io/managed-by"
	// truncatedValue is the value of the over-capacity annotation of an Endpoints object that
	// does not contain all addresses.
	truncatedValue = "truncated"
	// Capacity is the maximum number of addresses in an Endpoints object. An address in
	// several subsets counts once in each of them.
	Capacity = 1000
)

// These are the reasons of the events that this package emits.
const (
	FailedToCreateEndpoint = "FailedToCreateEndpoint"
	FailedToUpdateEndpoint = "FailedToUpdateEndpoint"
)
