package workload

import corev1 "k8s.io/api/core/v1"

// These are aliases for the types of the Endpoints API, which is deprecated in favor of
// EndpointSlice. This package needs them because the Endpoints controller is under test.
type (
	endpoints       = corev1.Endpoints       //nolint:staticcheck // the deprecated API is the subject
	endpointsSubset = corev1.EndpointSubset  //nolint:staticcheck // the deprecated API is the subject
	endpointAddress = corev1.EndpointAddress //nolint:staticcheck // the deprecated API is the subject
)
