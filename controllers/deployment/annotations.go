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

// Users and clients such as kubectl read these annotations.
const (
	// revisionAnnotation is the revision of a ReplicaSet. On a Deployment it is the revision
	// of its new ReplicaSet.
	revisionAnnotation = "deployment.kubernetes.io/revision"
	// historyAnnotation contains the former revisions of a ReplicaSet, separated by commas.
	historyAnnotation = "deployment.kubernetes.io/revision-history"
	// desiredReplicasAnnotation is set when a ReplicaSet is scaled. It is spec.replicas of the
	// Deployment at that time.
	desiredReplicasAnnotation = "deployment.kubernetes.io/desired-replicas"
	// maxReplicasAnnotation is set when a ReplicaSet is scaled. It is spec.replicas of the
	// Deployment plus maxSurge at that time.
	maxReplicasAnnotation = "deployment.kubernetes.io/max-replicas"
)

// maxHistoryLength is the maximum number of characters of the value of historyAnnotation.
const maxHistoryLength = 2000

// annotationsToSkip are the annotations that are never copied between a Deployment and its
// ReplicaSets. All other annotations are copied.
var annotationsToSkip = []string{
	corev1.LastAppliedConfigAnnotation,
	revisionAnnotation,
	historyAnnotation,
	desiredReplicasAnnotation,
	maxReplicasAnnotation,
	appsv1.DeprecatedRollbackTo,
}

// parseReplicas parses the number of replicas in an annotation. It returns false if the text
// is not a valid number of replicas.
func parseReplicas(text string) (int, bool) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n > math.MaxInt32 {
		return 0, false
	}
	return int(n), true
}

// withReplicasAnnotations returns the annotations with desired-replicas set to l.replicas, and
// max-replicas set to l.maxReplicas().
func withReplicasAnnotations(annotations map[string]string, l limits) map[string]string {
	return withEntries(annotations, map[string]string{
		desiredReplicasAnnotation: strconv.Itoa(l.replicas),
		maxReplicasAnnotation:     strconv.Itoa(l.maxReplicas()),
	})
}

// withRevision returns the annotations of a ReplicaSet with the given revision. If they had a
// lower revision before, it appends the lower one to the annotation revision-history.
//
// If they already have this or a higher revision, it returns them unchanged. They may have a
// higher one if ReplicaSets with higher revisions have been deleted.
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

// appendRevision appends a revision to a history. If the history becomes too long, it drops
// the oldest revisions.
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

// revisionOf returns the value of the revision annotation. It returns false if the annotation
// is missing or malformed.
func revisionOf(annotations map[string]string) (int64, bool) {
	revision, err := strconv.ParseInt(annotations[revisionAnnotation], 10, 64)
	return revision, err == nil
}

// withInheritedAnnotations adds the annotations of a Deployment to those of its ReplicaSet,
// except annotationsToSkip. Annotations that only the ReplicaSet has remain.
func withInheritedAnnotations(annotations, deployment map[string]string) map[string]string {
	return withEntries(annotations, inheritable(deployment))
}

// annotationsAfterRollback returns the annotations of a Deployment after a rollback to a
// ReplicaSet: those of the ReplicaSet.
//
// The annotations in annotationsToSkip are an exception: they keep the values of the
// Deployment. The rollback annotation is removed.
func annotationsAfterRollback(deployment, set map[string]string) map[string]string {
	annotations := inheritable(set)
	for _, key := range annotationsToSkip {
		if value, has := deployment[key]; has && key != appsv1.DeprecatedRollbackTo {
			annotations[key] = value
		}
	}
	return annotations
}

// inheritable returns the annotations without annotationsToSkip.
func inheritable(annotations map[string]string) map[string]string {
	rest := make(map[string]string, len(annotations))
	for key, value := range annotations {
		if !slices.Contains(annotationsToSkip, key) {
			rest[key] = value
		}
	}
	return rest
}

// withEntries returns annotations with the entries of changed added, whose values take
// precedence. If nothing changes, it returns annotations itself, otherwise a new map.
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
