package deployment

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// These are the annotations of ReplicaSets and Deployments that the controller writes. Users and
// clients such as kubectl read them.
const (
	// revisionAnnotation contains the revision number of a ReplicaSet. On a Deployment, it
	// contains the revision of the new ReplicaSet.
	revisionAnnotation = "deployment.kubernetes.io/revision"
	// historyAnnotation contains the former revisions of a ReplicaSet, such as "1,3".
	historyAnnotation = "deployment.kubernetes.io/revision-history"
	// desiredReplicasAnnotation contains the Deployment's spec.replicas at the last scaling of
	// the ReplicaSet.
	desiredReplicasAnnotation = "deployment.kubernetes.io/desired-replicas"
	// maxReplicasAnnotation contains the Deployment's spec.replicas plus maxSurge at the last
	// scaling of the ReplicaSet.
	maxReplicasAnnotation = "deployment.kubernetes.io/max-replicas"
)

// maxHistoryLength is the maximum number of characters in the value of historyAnnotation.
const maxHistoryLength = 2000

// annotationsToSkip lists the annotations that the controller does not copy between a Deployment
// and a ReplicaSet. Each of the two objects has its own values of them. The controller copies all
// other annotations.
var annotationsToSkip = []string{
	corev1.LastAppliedConfigAnnotation,
	revisionAnnotation,
	historyAnnotation,
	desiredReplicasAnnotation,
	maxReplicasAnnotation,
	appsv1.DeprecatedRollbackTo,
}

// parseReplicas returns the number in the annotation desired-replicas or max-replicas. The bool
// result is false if the argument text is not a number from 0 to the largest int32.
func parseReplicas(text string) (int, bool) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n > math.MaxInt32 {
		return 0, false
	}
	return int(n), true
}

// withReplicasAnnotations returns a ReplicaSet's annotations with new values of desired-replicas
// and max-replicas. The new values come from the argument l, the Deployment's limits. The next sync
// compares desired-replicas with the Deployment, to detect a change of spec.replicas.
func withReplicasAnnotations(annotations map[string]string, l limits) map[string]string {
	return withEntries(annotations, map[string]string{
		desiredReplicasAnnotation: strconv.Itoa(l.replicas),
		maxReplicasAnnotation:     strconv.Itoa(l.maxReplicas()),
	})
}

// withRevision returns a ReplicaSet's annotations with the given revision. If the annotations had a
// lower revision, withRevision appends the old number to the annotation revision-history.
//
// If the annotations already have this or a higher revision, withRevision returns them unchanged. A
// higher revision occurs if other ReplicaSets with high revisions were deleted.
func withRevision(annotations map[string]string, revision int64) map[string]string {
	before, had := revisionOf(annotations)
	if had && before >= revision {
		return annotations
	}
	changed := map[string]string{revisionAnnotation: strconv.FormatInt(revision, 10)}
	if had {
		changed[historyAnnotation] = appendRevision(annotations[historyAnnotation], strconv.FormatInt(before, 10))
	}
	return withEntries(annotations, changed)
}

// appendRevision returns the value of the annotation revision-history, such as "1,3", extended by
// a revision. If the new value is longer than maxHistoryLength, appendRevision drops the oldest
// revisions.
func appendRevision(history, revision string) string {
	if history == "" {
		return revision
	}
	history += "," + revision
	for len(history) > maxHistoryLength {
		_, history, _ = strings.Cut(history, ",")
	}
	return history
}

// revisionOf returns the number in the revision annotation. The bool result is false if the
// annotation is missing or not a number.
func revisionOf(annotations map[string]string) (int64, bool) {
	revision, err := strconv.ParseInt(annotations[revisionAnnotation], 10, 64)
	return revision, err == nil
}

// withInheritedAnnotations adds the Deployment's annotations to the annotations of its ReplicaSet,
// and returns the result. It does not add annotations that each object keeps for itself, such as
// the revision; see annotationsToSkip. withInheritedAnnotations keeps the annotations that only the
// ReplicaSet has.
func withInheritedAnnotations(annotations, deployment map[string]string) map[string]string {
	return withEntries(annotations, inheritable(deployment))
}

// annotationsAfterRollback returns the annotations of a Deployment that is rolled back to a
// ReplicaSet. These are the ReplicaSet's annotations.
//
// For annotations that each object keeps for itself, such as the revision, the Deployment's values
// remain; see annotationsToSkip. The rollback annotation is missing in the result.
func annotationsAfterRollback(deployment, set map[string]string) map[string]string {
	annotations := inheritable(set)
	for _, key := range annotationsToSkip {
		if value, has := deployment[key]; has && key != appsv1.DeprecatedRollbackTo {
			annotations[key] = value
		}
	}
	return annotations
}

// inheritable returns the annotations that a Deployment and its ReplicaSets pass to each other.
// These are all annotations except those in the list annotationsToSkip. The result is a copy.
func inheritable(annotations map[string]string) map[string]string {
	rest := make(map[string]string, len(annotations))
	for key, value := range annotations {
		if !slices.Contains(annotationsToSkip, key) {
			rest[key] = value
		}
	}
	return rest
}

// withEntries returns a map with the entries of both arguments. For a key in both, it uses the
// value in the argument changed. It does not modify its arguments. If no entry differs, the result
// is the map annotations itself.
func withEntries(annotations, changed map[string]string) map[string]string {
	same := true
	for key, value := range changed {
		if had, has := annotations[key]; !has || had != value {
			same = false
		}
	}
	if same {
		return annotations
	}
	merged := make(map[string]string, len(annotations)+len(changed))
	maps.Copy(merged, annotations)
	maps.Copy(merged, changed)
	return merged
}
