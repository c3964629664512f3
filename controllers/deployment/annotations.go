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

// These annotations are part of the API: users and clients such as kubectl read them.
const (
	// revisionAnnotation holds the revision of a ReplicaSet. On a Deployment, it holds
	// the revision of the new ReplicaSet.
	revisionAnnotation = "deployment.kubernetes.io/revision"
	// historyAnnotation holds the earlier revisions of a ReplicaSet, separated by
	// commas.
	historyAnnotation = "deployment.kubernetes.io/revision-history"
	// desiredReplicasAnnotation and maxReplicasAnnotation record, when a ReplicaSet is
	// scaled, the Deployment's replicas without and with maxSurge.
	desiredReplicasAnnotation = "deployment.kubernetes.io/desired-replicas"
	maxReplicasAnnotation     = "deployment.kubernetes.io/max-replicas"
)

// maxHistoryLength is the maximum length of a revision history, in characters.
const maxHistoryLength = 2000

// annotationsToSkip are never copied between a Deployment and its ReplicaSets. All
// other annotations are copied.
var annotationsToSkip = []string{
	corev1.LastAppliedConfigAnnotation,
	revisionAnnotation,
	historyAnnotation,
	desiredReplicasAnnotation,
	maxReplicasAnnotation,
	appsv1.DeprecatedRollbackTo,
}

// parseReplicas parses a number of replicas from an annotation.
func parseReplicas(text string) (int, bool) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n > math.MaxInt32 {
		return 0, false
	}
	return int(n), true
}

// withReplicasAnnotations returns annotations with desired-replicas and max-replicas
// set from the limits of the Deployment.
func withReplicasAnnotations(annotations map[string]string, l limits) map[string]string {
	return withEntries(annotations, map[string]string{
		desiredReplicasAnnotation: strconv.Itoa(l.replicas),
		maxReplicasAnnotation:     strconv.Itoa(l.maxReplicas()),
	})
}

// withRevision returns annotations with at least the given revision. If the revision
// increases, the old one is appended to the history. A revision never decreases,
// because ReplicaSets with higher revisions may have been deleted.
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

// appendRevision appends a revision to a history and drops the oldest revisions if the
// history gets too long.
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

// revisionOf returns the revision annotation. It returns false if the annotation is
// absent or malformed.
func revisionOf(annotations map[string]string) (int64, bool) {
	revision, err := strconv.ParseInt(annotations[revisionAnnotation], 10, 64)
	return revision, err == nil
}

// withInheritedAnnotations returns a ReplicaSet's annotations with those of its
// Deployment added. Annotations that only the ReplicaSet has stay.
func withInheritedAnnotations(annotations, deployment map[string]string) map[string]string {
	return withEntries(annotations, inheritable(deployment))
}

// annotationsAfterRollback returns the annotations of a Deployment that rolls back to
// a ReplicaSet. It takes annotationsToSkip from the Deployment, without the rollback
// annotation, and all others from the ReplicaSet.
func annotationsAfterRollback(deployment, set map[string]string) map[string]string {
	annotations := inheritable(set)
	for _, key := range annotationsToSkip {
		if value, has := deployment[key]; has && key != appsv1.DeprecatedRollbackTo {
			annotations[key] = value
		}
	}
	return annotations
}

func inheritable(annotations map[string]string) map[string]string {
	rest := make(map[string]string, len(annotations))
	for key, value := range annotations {
		if !slices.Contains(annotationsToSkip, key) {
			rest[key] = value
		}
	}
	return rest
}

// withEntries returns annotations plus the entries of changed. If both have a key, the
// value in changed applies. It returns the same map if nothing changes, and a new map
// otherwise.
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
