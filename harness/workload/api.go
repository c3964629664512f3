package workload

import corev1 "k8s.io/api/core/v1"

// The Endpoints API is deprecated in favor of EndpointSlice. This package uses the deprecated
// API, because the Endpoints controller is under test.
type (
	endpoints       = corev1.Endpoints       //nolint:staticcheck // the deprecated API is the subject
	endpointsSubset = corev1.EndpointSubset  //nolint:staticcheck // the deprecated API is the subject
	endpointAddress = corev1.EndpointAddress //nolint:staticcheck // the deprecated API is the subject
)
